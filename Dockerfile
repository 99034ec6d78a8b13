FROM rust:1.95-slim-trixie AS build
WORKDIR /src
COPY . .
RUN cargo build --release --locked --bin iit

FROM debian:trixie-slim
# postgresql-client: `iit backup` and `iit restore`; its version must not be below the server's. curl:
# the health check.
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates curl postgresql-client tzdata \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --system --create-home --home-dir /var/lib/iit iit
COPY --from=build /src/target/release/iit /usr/local/bin/iit
USER iit
ENV IIT_DATA_DIR=/var/lib/iit IIT_BIND=0.0.0.0:8080
EXPOSE 8080
STOPSIGNAL SIGTERM
ENTRYPOINT ["iit"]
CMD ["all"]
