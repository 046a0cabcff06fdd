//! The socket between the host and a child: it passes descriptors, asks the program to end, and closes with the host.

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    recvmsg, sendmsg,
};
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// The first byte on the socket, which the descriptor comes with.
const FIRST: u8 = b's';

/// Sends the program's standard input, if it has one.
pub(crate) fn send(socket: impl AsFd, input: Option<BorrowedFd<'_>>) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let handed: Vec<BorrowedFd<'_>> = input.into_iter().collect();
    if !handed.is_empty() && !control.push(SendAncillaryMessage::ScmRights(&handed)) {
        return Err(io::Error::other("a descriptor does not fit"));
    }
    sendmsg(socket, &[IoSlice::new(&[FIRST])], &mut control, SendFlags::empty())?;
    Ok(())
}

/// Receives the program's standard input, if it has one.
pub(crate) fn receive(socket: impl AsFd) -> io::Result<Option<OwnedFd>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut first = [0];
    let flags = if cfg!(target_os = "linux") { RecvFlags::CMSG_CLOEXEC } else { RecvFlags::empty() };
    let received = recvmsg(socket, &mut [IoSliceMut::new(&mut first)], &mut control, flags)?;
    if received.bytes != 1 || first != [FIRST] {
        return Err(io::Error::other("the host is gone"));
    }
    let mut descriptors = control.drain().flat_map(|message| match message {
        RecvAncillaryMessage::ScmRights(descriptors) => descriptors.collect::<Vec<_>>(),
        _ => Vec::new(),
    });
    Ok(descriptors.next())
}
