//! A web server by others (`h2` on tokio, with `tokio-rustls`), and a few lines of HTTP/1.1, on a thread of its own.
//!
//! `GET /items/7` is answered with `item 7`, a POST with its body and 201, `GET /who` with how the client came. Over
//! HTTP/2 the third `GET /crash/300` of a connection ends it after 300 ms.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use h2::RecvStream;
use http::{Request, Response};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::oneshot;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::{ServerConfig, ServerConnection};

/// Where it listens.
pub enum At {
    /// A port of its own choice.
    Port,
    Path(PathBuf),
}

/// Serves until it is dropped.
pub struct Server {
    pub port: u16,
    pub connections: Arc<AtomicU64>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Server {
    /// In the clear it speaks HTTP/2 where `http2` says so; over TLS what was agreed on.
    pub fn start(at: At, http2: bool, tls: Option<ServerConfig>) -> Server {
        let connections = Arc::new(AtomicU64::new(0));
        let counted = connections.clone();
        let (stop, stopped) = oneshot::channel();
        let (tell, told) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            let mut builder = tokio::runtime::Builder::new_current_thread();
            let runtime = builder.enable_all().build().unwrap();
            let acceptor = tls.map(|config| TlsAcceptor::from(Arc::new(config)));
            let serving = async move {
                tokio::select! {
                    () = serve(at, http2, acceptor, counted, tell) => {}
                    _ = stopped => {}
                }
            };
            tokio::task::LocalSet::new().block_on(&runtime, serving);
        });
        Server {
            port: told.recv().unwrap(),
            connections,
            stop: Some(stop),
            thread: Some(thread),
        }
    }

    pub fn connections(&self) -> u64 {
        self.connections.load(Ordering::SeqCst)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stop.take());
        self.thread.take().unwrap().join().unwrap();
    }
}

async fn serve(
    at: At,
    http2: bool,
    acceptor: Option<TlsAcceptor>,
    connections: Arc<AtomicU64>,
    tell: std::sync::mpsc::Sender<u16>,
) {
    match at {
        At::Path(path) => {
            let listener = UnixListener::bind(path).unwrap();
            tell.send(0).unwrap();
            while let Ok((socket, _)) = listener.accept().await {
                connections.fetch_add(1, Ordering::SeqCst);
                tokio::task::spawn_local(greet(socket, http2, acceptor.clone()));
            }
        }
        At::Port => {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            tell.send(listener.local_addr().unwrap().port()).unwrap();
            while let Ok((socket, _)) = listener.accept().await {
                connections.fetch_add(1, Ordering::SeqCst);
                socket.set_nodelay(true).unwrap();
                tokio::task::spawn_local(greet(socket, http2, acceptor.clone()));
            }
        }
    }
}

async fn greet(
    socket: impl AsyncRead + AsyncWrite + Unpin + 'static,
    http2: bool,
    acceptor: Option<TlsAcceptor>,
) {
    let Some(acceptor) = acceptor else {
        return talk(socket, http2, "in the clear".into()).await;
    };
    // A handshake that fails is the client's to tell.
    if let Ok(socket) = acceptor.accept(socket).await {
        let session = socket.get_ref().1;
        let http2 = session.alpn_protocol() == Some(b"h2");
        let who = introduced(session);
        talk(socket, http2, who).await;
    }
}

fn introduced(session: &ServerConnection) -> String {
    let offered = session.alpn_protocol().unwrap_or(b"nothing");
    format!(
        "name={} alpn={} version={:?} certificates={} handshake={:?}",
        session.server_name().unwrap_or("none"),
        String::from_utf8_lossy(offered),
        session.protocol_version().unwrap(),
        session.peer_certificates().map_or(0, <[_]>::len),
        session.handshake_kind().unwrap()
    )
}

async fn talk(socket: impl AsyncRead + AsyncWrite + Unpin + 'static, http2: bool, who: String) {
    match http2 {
        true => by_streams(socket, who).await,
        // A client that goes away in the middle is not this server's fault.
        false => drop(by_lines(socket, &who).await),
    }
}

fn answer(method: &str, path: &str, body: Bytes, who: &str) -> (u16, Bytes) {
    match (method, path.strip_prefix("/items/")) {
        ("GET" | "HEAD", Some(item)) => (200, format!("item {item}").into()),
        ("GET", None) if path.starts_with("/crash/") => (200, Bytes::new()),
        ("GET", None) if path == "/who" => (200, who.to_owned().into()),
        ("POST", None) => (201, body),
        _ => (404, Bytes::new()),
    }
}

async fn by_streams(socket: impl AsyncRead + AsyncWrite + Unpin + 'static, who: String) {
    let Ok(mut connection) = h2::server::handshake(socket).await else {
        return;
    };
    let mut taken = 0;
    while let Some(Ok((request, mut respond))) = connection.accept().await {
        taken += 1;
        if let Some(millis) = request.uri().path().strip_prefix("/crash/")
            && taken == 3
        {
            return tokio::time::sleep(Duration::from_millis(millis.parse().unwrap())).await;
        }
        let who = who.clone();
        tokio::task::spawn_local(async move {
            let (head, body) = read(request).await?;
            let (status, said) = answer(head.0.as_str(), &head.1, body, &who);
            let is_head = head.0 == "HEAD";
            let told = Response::builder()
                .status(status)
                .header("content-length", said.len());
            let mut stream = respond.send_response(told.body(()).unwrap(), is_head)?;
            match is_head {
                true => Ok(()),
                false => stream.send_data(said, true),
            }
        });
    }
}

async fn read(request: Request<RecvStream>) -> Result<((String, String), Bytes), h2::Error> {
    let told = request.headers().get("content-length").cloned();
    let head = (
        request.method().to_string(),
        request.uri().path_and_query().unwrap().to_string(),
    );
    let (mut body, mut came) = (request.into_body(), BytesMut::new());
    while let Some(piece) = body.data().await {
        let piece = piece?;
        body.flow_control().release_capacity(piece.len())?;
        came.extend_from_slice(&piece);
    }
    if let Some(told) = told {
        assert_eq!(told.to_str().unwrap(), came.len().to_string());
    }
    Ok((head, came.freeze()))
}

async fn by_lines(socket: impl AsyncRead + AsyncWrite + Unpin, who: &str) -> std::io::Result<()> {
    let mut socket = BufReader::new(socket);
    loop {
        let (mut first, mut line, mut length) = (String::new(), String::new(), 0);
        if socket.read_line(&mut first).await? == 0 {
            return Ok(());
        }
        while socket.read_line(&mut line).await? > 2 {
            if let Some(value) = line.strip_prefix("Content-Length: ") {
                length = value.trim().parse().unwrap();
            }
            line.clear();
        }
        let mut body = vec![0; length];
        socket.read_exact(&mut body).await?;
        let mut words = first.split(' ');
        let (method, path) = (words.next().unwrap(), words.next().unwrap());
        let (status, said) = answer(method, path, body.into(), who);
        let head = format!(
            "HTTP/1.1 {status} As told\r\nContent-Length: {}\r\n\r\n",
            said.len()
        );
        socket.write_all(head.as_bytes()).await?;
        socket.write_all(&said).await?;
        socket.flush().await?;
    }
}
