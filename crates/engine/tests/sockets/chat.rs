//! A WebSocket server by others (the `tungstenite` crate): `/echo` sends back, any other path is a room of all.

use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tungstenite::handshake::server::{Request, Response};
use tungstenite::{Message, WebSocket};

/// Who is in the room.
type Room = Arc<Mutex<Vec<Sender<Message>>>>;

pub struct Chat {
    pub port: u16,
    /// Close frames that came, each with its code.
    pub goodbyes: Arc<Mutex<Vec<u16>>>,
}

impl Chat {
    /// A server that ends with its process.
    pub fn start() -> Chat {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (room, goodbyes) = (Room::default(), Arc::default());
        let chat = Chat {
            port,
            goodbyes: Arc::clone(&goodbyes),
        };
        std::thread::spawn(move || {
            for peer in listener.incoming() {
                let (room, goodbyes) = (room.clone(), goodbyes.clone());
                std::thread::spawn(move || serve(peer.unwrap(), &room, &goodbyes));
            }
        });
        chat
    }
}

#[allow(clippy::result_large_err, reason = "the type of the crate's callback")]
fn serve(peer: TcpStream, room: &Room, goodbyes: &Mutex<Vec<u16>>) {
    let mut echoes = false;
    let shaken = tungstenite::accept_hdr(peer, |request: &Request, response: Response| {
        echoes = request.uri().path() == "/echo";
        Ok(response)
    });
    let Ok(mut socket) = shaken else { return };
    let (sender, heard) = channel();
    if !echoes {
        room.lock().unwrap().push(sender);
    }
    // A member both reads and is told: it looks at the one and the other in turns.
    let pause = Some(Duration::from_micros(200)).filter(|_| !echoes);
    socket.get_ref().set_read_timeout(pause).unwrap();
    while tell(&mut socket, &heard) {
        match socket.read() {
            Ok(message @ (Message::Text(_) | Message::Binary(_))) if echoes => {
                if socket.send(message).is_err() {
                    return;
                }
            }
            Ok(message @ (Message::Text(_) | Message::Binary(_))) => {
                let members = room.lock().unwrap();
                for member in members.iter() {
                    // Whoever has left hears nothing.
                    let _ = member.send(message.clone());
                }
            }
            Ok(Message::Close(frame)) => {
                let code = frame.map_or(1005, |frame| frame.code.into());
                goodbyes.lock().unwrap().push(code);
            }
            Ok(_) => {}
            Err(tungstenite::Error::Io(error))
                if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(_) => return,
        }
    }
}

/// Sends what others said. Whether the member is still there.
fn tell(socket: &mut WebSocket<TcpStream>, heard: &Receiver<Message>) -> bool {
    heard.try_iter().all(|message| socket.send(message).is_ok())
}
