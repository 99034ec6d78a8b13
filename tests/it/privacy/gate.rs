//! The gate itself, asked as a conversation with tools asks it: messages, arguments, results, turn by turn.

use std::sync::Mutex;
use std::time::Duration;

use iit_manager::{
    adapters::llm::{ChatRequest, Format, Message, Role, ToolCall, ToolSpec},
    engines::redaction::Hidden,
    jobs::common::{
        ask::{Asked, Question, ask},
        study::Study,
    },
    queue::{JobError, Lease},
    store::chat_runs::{self, ChatRun},
    types::ids::RunId,
};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{
    assert_clean,
    person::Person,
    recorder::{Recorder, says},
    study,
};
use crate::support::app::TestApp;
use crate::support::postgres::TestDb;

/// The program, a run of its own, and what asks for it.
struct Desk {
    app: TestApp,
    run: RunId,
}

impl Desk {
    async fn new(people: &[Person], model: &Recorder) -> Self {
        let clock = iit_manager::types::clock::Clock::system();
        let app = TestApp::start_with(TestDb::new().await, clock, &model.variables()).await;
        app.apply(&study(people)).await;
        let run = ChatRun {
            id: RunId::generate(),
            project: "lung".to_owned(),
            kind: "react".to_owned(),
            status: "running".to_owned(),
            step_no: 0,
            record: None,
            message: None,
            message_part: None,
            asked_by: Some("ZhangSan".to_owned()),
            parent: None,
            parent_step: None,
            tokens: 0,
        };
        let mut conn = app.db.pool.acquire().await.unwrap();
        chat_runs::begin(&mut conn, &run).await.unwrap();
        Self { app, run: run.id }
    }

    async fn ask(&self, step: i32, request: ChatRequest) -> Result<Asked, JobError> {
        let services = self.app.wiring.services();
        let mut conn = services.pool.acquire().await.unwrap();
        let study = Study::load(services, &mut conn, "lung").await?;
        drop(conn);
        let redactor = services.redactor(&study).await?;
        let model = services.model.as_ref().unwrap();
        let lease = Lease {
            job: 1,
            token: Uuid::new_v4(),
            attempt: 1,
            max_attempts: 3,
            queue: "llm".to_owned(),
            group: None,
            priority: 0,
            length: Duration::from_secs(30),
            limited: false,
        };
        let question = Question {
            project: "lung",
            run: self.run,
            step,
            thread: "t",
            said: &[],
            prompt_version: "test-1",
            request,
            redactor: &redactor,
            run_limits: (100, 10_000_000),
            day_limits: model.day_limits(&study.project.file.llm),
        };
        ask(services, model, &lease, &question).await
    }

    async fn answered(
        &self,
        step: i32,
        request: ChatRequest,
    ) -> (iit_manager::adapters::llm::Reply, Hidden) {
        match self.ask(step, request).await.unwrap() {
            Asked::Reply { reply, hidden, .. } => (reply, *hidden),
            Asked::Unavailable(why) => panic!("{why}"),
        }
    }
}

fn request(messages: Vec<Message>) -> ChatRequest {
    ChatRequest {
        messages,
        max_tokens: 1000,
        format: Format::Text,
        tools: vec![ToolSpec {
            name: "search_records".to_owned(),
            description: "查找受试者".to_owned(),
            parameters: json!({ "type": "object" }),
        }],
    }
}

/// The model looks up the first person it is told of, then repeats what the tool said.
async fn looking_up() -> Recorder {
    Recorder::start(None, |request| {
        let shown = request.all();
        let start = shown.find('〔').unwrap();
        let end = start + shown[start..].find('〕').unwrap() + "〕".len();
        let somebody = &shown[start..end];
        match request.body["messages"].as_array().unwrap().iter().any(|m| m["role"] == "tool") {
            true => says(&json!({ "content": format!("{somebody}：{}", request.last()) })),
            false => says(&json!({ "content": null, "tool_calls": [{
                "id": "call_1", "type": "function",
                "function": { "name": "search_records", "arguments": json!({ "name": somebody }).to_string() },
            }]})),
        }
    })
    .await
}

#[tokio::test]
async fn a_conversation_with_tools_shows_nobody_and_still_finds_the_right_one() {
    let people = Person::several(4);
    let model = looking_up().await;
    let desk = Desk::new(&people, &model).await;
    let question = format!(
        "{}的末次访视？{}",
        people[0].name,
        people.iter().map(Person::note).collect::<String>()
    );
    let mut said = vec![
        Message::text(Role::System, "你协助研究团队。"),
        Message::text(Role::User, question.as_str()),
    ];
    let (reply, hidden) = desk.answered(0, request(said.clone())).await;
    let call = reply.tool_calls[0].clone();
    assert!(call.arguments.contains('〔'), "{}", call.arguments);
    let arguments: Value = serde_json::from_str(&hidden.restore_json(&call.arguments)).unwrap();
    assert_eq!(
        arguments["name"], people[0].name,
        "what the tool is called with"
    );

    let mut asked = Message::text(Role::Assistant, "");
    asked.tool_calls = vec![ToolCall { ..call }];
    let rows: Vec<Value> = people
        .iter()
        .map(|p| json!({ "pname": p.name, "idc": p.card, "dob": p.born, "tel": p.phone, "addr": p.address, "note": p.note() }))
        .collect();
    let result = json!({ "rows": rows, "note": r#"他写道："复查"\n"# }).to_string();
    said.extend([asked, Message::tool("call_1", result.as_str())]);
    let (reply, hidden) = desk.answered(1, request(said.clone())).await;
    assert_eq!(
        hidden.restore(&reply.text),
        format!("{}：{result}", people[0].name)
    );
    assert_clean(
        "what somebody else is shown",
        hidden.mask(&reply.text).as_bytes(),
        &people,
    );

    let requests = model.bytes();
    assert_eq!(requests.len(), 2);
    for bytes in &requests {
        assert_clean("a request", bytes, &people);
    }
    let bodies = model.bodies();
    assert_eq!(
        bodies[0]["messages"][1], bodies[1]["messages"][1],
        "the same words in every turn"
    );

    // After a crash: the stored answer, and the way back out of the database.
    let (again, hidden) = desk.answered(1, request(said)).await;
    assert_eq!(
        hidden.restore(&again.text),
        format!("{}：{result}", people[0].name)
    );
    assert_eq!(model.bytes().len(), 2, "not asked again");
    let journal = desk
        .app
        .text("SELECT string_agg(reply, ' ') FROM iit_llm_calls")
        .await
        .unwrap();
    assert_clean("the journal", journal.as_bytes(), &people);
    desk.app.stop().await;
}

#[tokio::test]
async fn a_study_that_can_not_be_read_is_asked_nothing_about() {
    let people = Person::several(1);
    let model = looking_up().await;
    let desk = Desk::new(&people, &model).await;
    let study = study(&people);
    desk.app.apply_project(&study).await;
    std::fs::remove_file(study.export().join("records.csv")).unwrap();
    let said = vec![Message::text(Role::User, "患者张三怎么样了")];
    let refused = desk.ask(0, request(said)).await;
    assert!(refused.is_err());
    assert_eq!(model.bytes().len(), 0);
    assert_eq!(desk.app.count("iit_llm_calls").await, 0);
    desk.app.stop().await;
}

#[tokio::test]
async fn a_value_entered_meanwhile_is_hidden_from_the_next_question_on() {
    let mut people = Person::several(2);
    people[0].name = "张三".to_owned();
    let seen = Mutex::new(0);
    let model = Recorder::start(None, move |_| {
        *seen.lock().unwrap() += 1;
        says(&json!({ "content": "好" }))
    })
    .await;
    let desk = Desk::new(&people[..1], &model).await;
    let said = format!("{}来过", people[1].phone);
    let asked = |text: &str| request(vec![Message::text(Role::User, text)]);
    desk.answered(0, asked(&said)).await;
    let both = study(&people);
    desk.app.apply_project(&both).await;
    // Bare, a rare name is known by the data alone.
    desk.answered(1, asked(&format!("今天{}来过", people[1].name)))
        .await;
    let bodies = model.bytes();
    assert_clean("the second question", &bodies[1], &people);
    desk.app.stop().await;
}

#[tokio::test]
async fn two_runs_number_their_own_and_neither_reads_the_others() {
    let people = Person::several(2);
    let model = Recorder::start(None, |_| {
        says(&json!({ "content": "〔姓名1〕与〔姓名2〕" }))
    })
    .await;
    let first = Desk::new(&people, &model).await;
    let text = |person: &Person| {
        request(vec![Message::text(
            Role::User,
            format!("患者{}", person.name),
        )])
    };
    let (reply, hidden) = first.answered(0, text(&people[0])).await;
    assert_eq!(
        hidden.restore(&reply.text),
        format!("{}与〔姓名2〕", people[0].name)
    );
    let second = Desk::new(&people, &model).await;
    let (reply, hidden) = second.answered(0, text(&people[1])).await;
    assert_eq!(
        hidden.restore(&reply.text),
        format!("{}与〔姓名2〕", people[1].name)
    );
    first.app.stop().await;
    second.app.stop().await;
}

#[tokio::test]
async fn the_role_of_the_read_tools_may_not_read_what_placeholders_stand_for() {
    let db = TestDb::new().await;
    let open: i64 = sqlx::query_scalar(
        "SELECT count(*) FROM pg_roles WHERE rolname IN ('iit_reader', 'pg_read_server_files')
         AND has_table_privilege(oid, 'iit_schema.iit_placeholders', 'SELECT')",
    )
    .fetch_one(&db.pool)
    .await
    .unwrap();
    assert_eq!(open, 0);
}
