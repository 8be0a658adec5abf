//! What the server says of its calls, in the messages of server reflection.

use bytes::{Buf, Bytes, BytesMut};
use h2::{RecvStream, SendStream};
use prost::Message as _;
use prost_reflect::prost_types::{
    DescriptorProto, FieldDescriptorProto, FileDescriptorProto, MethodDescriptorProto,
    ServiceDescriptorProto,
};

use crate::server::{end, send};

#[derive(Clone, PartialEq, prost::Message)]
pub struct Said {
    #[prost(string, tag = "1")]
    pub text: String,
}

pub fn framed(message: &impl prost::Message) -> Bytes {
    Bytes::from(velodrome_engine::protocol::grpc::frame(
        &message.encode_to_vec(),
    ))
}

/// Reflection that leaves out what a file imports until it is asked for it by name, as servers may.
pub async fn reflect(mut body: RecvStream, mut stream: SendStream<Bytes>) -> Result<(), h2::Error> {
    let mut heard = BytesMut::new();
    while let Some(piece) = body.data().await {
        let piece = piece?;
        body.flow_control().release_capacity(piece.len())?;
        heard.extend_from_slice(&piece);
        while heard.len() >= 5 {
            let length = u32::from_be_bytes([heard[1], heard[2], heard[3], heard[4]]) as usize;
            if heard.len() < 5 + length {
                break;
            }
            heard.advance(5);
            let asked = heard.split_to(length);
            let reply = reflected(&asked);
            send(
                &mut stream,
                Bytes::from(velodrome_engine::protocol::grpc::frame(&reply)),
            )
            .await?;
        }
    }
    end(&mut stream, 0)
}

/// Written by hand, so that it is not the client's own idea of the messages that answers it.
fn reflected(asked: &[u8]) -> Vec<u8> {
    let text = |from: usize| String::from_utf8_lossy(&asked[from..]).into_owned();
    let file = |file: FileDescriptorProto| {
        let inner = field(1, &file.encode_to_vec());
        field(4, &inner)
    };
    match asked.first() {
        // file_by_filename
        Some(0x1a) if text(2) == "parts/said.proto" => file(said_file()),
        // file_containing_symbol
        Some(0x22) if text(2) == "test.Echo" => file(echo_file()),
        // list_services
        Some(0x3a) => field(6, &field(1, &field(1, b"test.Echo"))),
        _ => field(7, &[vec![0x08, 5], field(2, b"not here")].concat()),
    }
}

fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let mut encoded = vec![number << 3 | 2];
    let mut length = bytes.len();
    while length > 0x7f {
        encoded.push(length as u8 | 0x80);
        length >>= 7;
    }
    encoded.push(length as u8);
    encoded.extend_from_slice(bytes);
    encoded
}

fn said_file() -> FileDescriptorProto {
    FileDescriptorProto {
        name: Some("parts/said.proto".into()),
        package: Some("test".into()),
        syntax: Some("proto3".into()),
        message_type: vec![DescriptorProto {
            name: Some("Said".into()),
            field: vec![FieldDescriptorProto {
                name: Some("text".into()),
                number: Some(1),
                label: Some(1),
                r#type: Some(9),
                ..FieldDescriptorProto::default()
            }],
            ..DescriptorProto::default()
        }],
        ..FileDescriptorProto::default()
    }
}

fn echo_file() -> FileDescriptorProto {
    let method = |name: &str, takes: bool, gives: bool| MethodDescriptorProto {
        name: Some(name.into()),
        input_type: Some(".test.Said".into()),
        output_type: Some(".test.Said".into()),
        client_streaming: Some(takes),
        server_streaming: Some(gives),
        ..MethodDescriptorProto::default()
    };
    FileDescriptorProto {
        name: Some("echo.proto".into()),
        package: Some("test".into()),
        syntax: Some("proto3".into()),
        dependency: vec!["parts/said.proto".into()],
        service: vec![ServiceDescriptorProto {
            name: Some("Echo".into()),
            method: vec![
                method("Unary", false, false),
                method("Collect", true, false),
                method("Repeat", false, true),
                method("Chat", true, true),
            ],
            ..ServiceDescriptorProto::default()
        }],
        ..FileDescriptorProto::default()
    }
}
