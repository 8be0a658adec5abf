//! The messages of server reflection, as far as they are used here.
//!
//! Field numbers: `grpc/reflection/v1/reflection.proto` of the gRPC project.

/// `ServerReflectionRequest`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Request {
    #[prost(string, tag = "1")]
    pub host: String,
    #[prost(oneof = "Question", tags = "3, 4, 7")]
    pub question: Option<Question>,
}

/// What is asked.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum Question {
    #[prost(string, tag = "3")]
    FileByName(String),
    #[prost(string, tag = "4")]
    FileContainingSymbol(String),
    #[prost(string, tag = "7")]
    ListServices(String),
}

/// `ServerReflectionResponse`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Response {
    #[prost(oneof = "Answer", tags = "4, 6, 7")]
    pub answer: Option<Answer>,
}

/// What is answered.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum Answer {
    #[prost(message, tag = "4")]
    Files(Files),
    #[prost(message, tag = "6")]
    Services(Services),
    #[prost(message, tag = "7")]
    Error(Failure),
}

/// `FileDescriptorResponse`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Files {
    /// Each an encoded `FileDescriptorProto`.
    #[prost(bytes = "vec", repeated, tag = "1")]
    pub files: Vec<Vec<u8>>,
}

/// `ListServiceResponse`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Services {
    #[prost(message, repeated, tag = "1")]
    pub services: Vec<Service>,
}

/// `ServiceResponse`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Service {
    #[prost(string, tag = "1")]
    pub name: String,
}

/// `ErrorResponse`; the code is a grpc-status.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Failure {
    #[prost(int32, tag = "1")]
    pub code: i32,
    #[prost(string, tag = "2")]
    pub message: String,
}
