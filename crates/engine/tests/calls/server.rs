//! A gRPC server by others (`h2` on tokio, with `tokio-rustls`) on a thread of its own, over real sockets.

use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use h2::server::{Builder, SendResponse};
use h2::{Reason, RecvStream, SendStream};
use http::{HeaderMap, HeaderValue, Request, Response};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::oneshot;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

use crate::description::{Said, framed, reflect};

/// How the server differs from one that does what it is asked.
#[derive(Clone, Default)]
pub struct Manners {
    /// Streams at once that it allows on a connection.
    pub streams: Option<u32>,
    /// Says GOAWAY after so many calls on a connection.
    pub leaves_after: Option<u64>,
    /// The name of the reflection service it has.
    pub reflects: Option<&'static str>,
    /// Encrypts, and offers these protocols.
    pub offers: Option<&'static [&'static [u8]]>,
    /// Whom its certificate names, if not where it is.
    pub named: Option<&'static str>,
}

/// What it counts.
#[derive(Default)]
pub struct Counts {
    pub connections: AtomicU64,
    pub calls: AtomicU64,
    pub resets: AtomicU64,
}

/// Serves until it is dropped.
pub struct Server {
    pub port: u16,
    pub counts: Arc<Counts>,
    /// Its own certificate, as PEM.
    pub certificate: String,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Server {
    pub fn start(manners: Manners) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let port = listener.local_addr().unwrap().port();
        let counts = Arc::new(Counts::default());
        let (stop, stopped) = oneshot::channel();
        let CertifiedKey { cert, signing_key } =
            generate_simple_self_signed([manners.named.unwrap_or("127.0.0.1").to_owned()]).unwrap();
        let acceptor = manners.offers.map(|offers| {
            let key = PrivateKeyDer::Pkcs8(signing_key.serialize_der().into());
            let mut config = ServerConfig::builder_with_provider(ring::default_provider().into())
                .with_safe_default_protocol_versions()
                .unwrap()
                .with_no_client_auth()
                .with_single_cert(vec![cert.der().clone()], key)
                .unwrap();
            config.alpn_protocols = offers.iter().map(|offer| offer.to_vec()).collect();
            TlsAcceptor::from(Arc::new(config))
        });
        let counted = counts.clone();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            let serving = async move {
                tokio::select! {
                    () = serve(listener, manners, acceptor, counted) => {}
                    _ = stopped => {}
                }
            };
            tokio::task::LocalSet::new().block_on(&runtime, serving);
        });
        Server {
            port,
            counts,
            certificate: cert.pem(),
            stop: Some(stop),
            thread: Some(thread),
        }
    }

    pub fn calls(&self) -> u64 {
        self.counts.calls.load(Ordering::SeqCst)
    }

    pub fn connections(&self) -> u64 {
        self.counts.connections.load(Ordering::SeqCst)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stop.take());
        self.thread.take().unwrap().join().unwrap();
    }
}

async fn serve(
    listener: TcpListener,
    manners: Manners,
    acceptor: Option<TlsAcceptor>,
    counts: Arc<Counts>,
) {
    let listener = tokio::net::TcpListener::from_std(listener).unwrap();
    loop {
        let (socket, _) = listener.accept().await.unwrap();
        socket.set_nodelay(true).unwrap();
        counts.connections.fetch_add(1, Ordering::SeqCst);
        let (manners, acceptor, counts) = (manners.clone(), acceptor.clone(), counts.clone());
        tokio::task::spawn_local(async move {
            match acceptor {
                None => connection(socket, manners, counts).await,
                Some(acceptor) => {
                    // A client that does not trust the certificate leaves in the handshake.
                    if let Ok(socket) = acceptor.accept(socket).await {
                        match socket.get_ref().1.alpn_protocol() {
                            Some(b"h2") => connection(socket, manners, counts).await,
                            _ => over_http1(socket).await,
                        }
                    }
                }
            }
        });
    }
}

/// One answer to one request, and again.
async fn over_http1(mut socket: impl AsyncRead + AsyncWrite + Unpin) {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let (mut heard, mut buffer) = (Vec::new(), [0; 4096]);
    while let Ok(count @ 1..) = socket.read(&mut buffer).await {
        heard.extend_from_slice(&buffer[..count]);
        if heard.ends_with(b"\r\n\r\n") {
            heard.clear();
            let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
            socket.write_all(answer).await.unwrap();
        }
    }
}

async fn connection(
    socket: impl AsyncRead + AsyncWrite + Unpin,
    manners: Manners,
    counts: Arc<Counts>,
) {
    let mut builder = Builder::new();
    if let Some(streams) = manners.streams {
        builder.max_concurrent_streams(streams);
    }
    let Ok(mut connection) = builder.handshake::<_, Bytes>(socket).await else {
        return;
    };
    let mut calls = 0;
    while let Some(Ok((request, respond))) = connection.accept().await {
        calls += 1;
        counts.calls.fetch_add(1, Ordering::SeqCst);
        if manners.leaves_after == Some(calls) {
            connection.graceful_shutdown();
        }
        let (manners, counts) = (manners.clone(), counts.clone());
        tokio::task::spawn_local(async move {
            if answer(request, respond, &manners).await.is_err() {
                counts.resets.fetch_add(1, Ordering::SeqCst);
            }
        });
    }
}

async fn answer(
    request: Request<RecvStream>,
    mut respond: SendResponse<Bytes>,
    manners: &Manners,
) -> Result<(), h2::Error> {
    let path = request.uri().path().to_owned();
    let mut body = request.into_body();
    let head = || {
        let head = Response::builder().header("content-type", "application/grpc");
        head.body(()).unwrap()
    };
    if manners
        .reflects
        .is_some_and(|name| path.starts_with(&format!("/{name}/")))
    {
        return reflect(body, respond.send_response(head(), false)?).await;
    }
    match path.as_str() {
        "/test.Echo/Unary" => {
            let whole = read(&mut body).await?;
            let mut stream = respond.send_response(head(), false)?;
            send(&mut stream, whole).await?;
            end(&mut stream, 0)
        }
        "/test.Echo/Collect" => {
            let length = read(&mut body).await?.len();
            let mut stream = respond.send_response(head(), false)?;
            send(
                &mut stream,
                framed(&Said {
                    text: length.to_string(),
                }),
            )
            .await?;
            end(&mut stream, 0)
        }
        "/test.Echo/Repeat" => {
            let message = read(&mut body).await?;
            let mut stream = respond.send_response(head(), false)?;
            for _ in 0..3 {
                send(&mut stream, message.clone()).await?;
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            end(&mut stream, 0)
        }
        "/test.Echo/Chat" => {
            let mut stream = respond.send_response(head(), false)?;
            while let Some(piece) = body.data().await {
                let piece = piece?;
                body.flow_control().release_capacity(piece.len())?;
                send(&mut stream, piece).await?;
            }
            end(&mut stream, 0)
        }
        "/test.Echo/Never" => match respond.poll_closed().await {
            true => Err(Reason::CANCEL.into()),
            false => Ok(()),
        },
        _ => {
            let refusal = Response::builder().header("grpc-status", "12");
            respond.send_response(refusal.body(()).unwrap(), true)?;
            Ok(())
        }
    }
}

/// Waits until the client resets.
trait Closed {
    async fn poll_closed(&mut self) -> bool;
}

impl Closed for SendResponse<Bytes> {
    async fn poll_closed(&mut self) -> bool {
        std::future::poll_fn(|context| self.poll_reset(context))
            .await
            .is_ok_and(|reason| reason == Reason::CANCEL)
    }
}

async fn read(body: &mut RecvStream) -> Result<Bytes, h2::Error> {
    let mut whole = BytesMut::new();
    while let Some(piece) = body.data().await {
        let piece = piece?;
        body.flow_control().release_capacity(piece.len())?;
        whole.extend_from_slice(&piece);
    }
    Ok(whole.freeze())
}

/// Sends as the client's window lets it.
pub async fn send(stream: &mut SendStream<Bytes>, mut bytes: Bytes) -> Result<(), h2::Error> {
    while !bytes.is_empty() {
        stream.reserve_capacity(bytes.len());
        let room = std::future::poll_fn(|context| stream.poll_capacity(context)).await;
        let now = room
            .ok_or(h2::Error::from(Reason::CANCEL))??
            .min(bytes.len());
        stream.send_data(bytes.split_to(now), false)?;
    }
    Ok(())
}

pub fn end(stream: &mut SendStream<Bytes>, status: u32) -> Result<(), h2::Error> {
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", HeaderValue::from(status));
    stream.send_trailers(trailers)
}
