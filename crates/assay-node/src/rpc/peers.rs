//! RPC of manual connections.

use std::borrow::Cow;
use std::sync::Arc;

use assay_wire::p2p::Command;

use super::method::{Call, help};
use super::{Node, bad};
use crate::jsonrpc::{Code, Json, RpcError, unhex};
use crate::p2p::{AddNodeError, Connection, P2p};

pub(super) const ADDNODE: Call = |context, args, out| {
    let (node, command) = (args.string(0)?.into_owned(), args.string(1)?.into_owned());
    if !["add", "remove", "onetry"].contains(&&*command) {
        return Err(RpcError::new(Code::Misc, help("addnode")));
    }
    if node.trim_ascii().is_empty() {
        return Err(bad("Error: Node address cannot be empty"));
    }
    let encrypted = args.value(2).map(|_| args.bool_or(2, false)).transpose()?;
    let network = network(context)?;
    let encrypted = encrypted.unwrap_or(network.peers.has_encryption());
    if encrypted && !network.peers.has_encryption() {
        let text = "Error: v2transport requested but not enabled (see -v2transport)";
        return Err(bad(text));
    }
    match &*command {
        "onetry" => network.connect(&node, Connection::Manual, encrypted),
        "add" => network.add_permanent(&node, encrypted).map_err(not_changed)?,
        _ => network.remove_permanent(&node).map_err(not_changed)?,
    }
    Json::new(out).null();
    Ok(())
};

pub(super) const GETADDEDNODEINFO: Call = |node, args, out| {
    let only = args.optional_string(0)?.map(Cow::into_owned);
    let network = network(node)?;
    let mut names = network.permanent();
    if let Some(only) = only.as_deref() {
        names.retain(|name| name == only);
        if names.is_empty() {
            return Err(RpcError::new(Code::NodeNotAdded, "Error: Node has not been added."));
        }
    }
    let peers = network.peers.list();
    let mut array = Json::new(out).array();
    for name in names {
        let peer = peers.iter().find(|peer| peer.name.as_deref() == Some(&*name));
        let mut object = array.item().object();
        object.key("addednode").string(&name);
        object.key("connected").bool(peer.is_some());
        let mut addresses = object.key("addresses").array();
        if let Some(peer) = peer {
            let mut address = addresses.item().object();
            address.key("address").text(peer.address);
            let is_inbound = peer.connection.is_inbound();
            address.key("connected").string(if is_inbound { "inbound" } else { "outbound" });
        }
    }
    Ok(())
};

pub(super) const PING: Call = |node, _, out| {
    network(node)?.ping_all();
    Json::new(out).null();
    Ok(())
};

pub(super) const DISCONNECTNODE: Call = |node, args, out| {
    let address = args.optional_string(0)?.map(Cow::into_owned);
    let id = args.value(1).map(|_| args.integer::<u64>(1)).transpose()?;
    let address = address.filter(|address| !address.is_empty());
    if address.is_some() == id.is_some() {
        let text = "Only one of address and nodeid should be provided.";
        return Err(RpcError::new(Code::InvalidParams, text));
    }
    let peers = &network(node)?.peers;
    let peer = match (address.as_deref(), id) {
        (Some(address), _) => peers.list().into_iter().find(|peer| {
            peer.address.to_string() == address || peer.name.as_deref() == Some(address)
        }),
        (None, id) => id.and_then(|id| peers.find(id)),
    };
    let missing = "Node not found in connected nodes";
    let peer = peer.ok_or_else(|| RpcError::new(Code::NodeNotConnected, missing))?;
    peer.close();
    Json::new(out).null();
    Ok(())
};

pub(super) const ADDCONNECTION: Call = |node, args, out| {
    if !node.rpc.params.name.starts_with("regtest") {
        return Err(RpcError::new(
            Code::Misc,
            "addconnection is for regression testing (-regtest mode) only.",
        ));
    }
    let (address, kind) = (args.string(0)?.into_owned(), args.string(1)?.into_owned());
    let connection = match &*kind {
        "outbound-full-relay" => Connection::FullRelay,
        "block-relay-only" => Connection::BlockRelayOnly,
        "addr-fetch" => Connection::AddrFetch,
        "feeler" => Connection::Feeler,
        _ => return Err(bad(help("addconnection"))),
    };
    let encrypted = args.bool_or(2, false)?;
    let network = network(node)?;
    if encrypted && !network.peers.has_encryption() {
        let text =
            "Error: Adding v2transport connections requires -v2transport init flag to be set.";
        return Err(bad(text));
    }
    network.connect(&address, connection, encrypted);
    let mut object = Json::new(out).object();
    object.key("address").string(&address);
    object.key("connection_type").string(&kind);
    Ok(())
};

pub(super) const SENDMSGTOPEER: Call = |node, args, out| {
    let id = args.integer::<i64>(0)?;
    let name = args.string(1)?;
    let mut padded = [0; 12];
    let Some(place) = padded.get_mut(..name.len()) else {
        return Err(bad("Error: msg_type too long, max length is 12"));
    };
    place.copy_from_slice(name.as_bytes());
    let command = Command::parse(&padded).ok_or_else(|| bad("Error: msg_type is not printable"))?;
    let text = args.string(2)?;
    let payload = unhex(text.as_bytes()).ok_or_else(|| bad("Error parsing input for msg"))?;
    let id = u64::try_from(id).ok();
    let network = network(node)?;
    if !id.is_some_and(|id| network.send_message(id, command, &payload)) {
        let text = "Error: Could not send message to peer";
        return Err(RpcError::new(Code::Misc, text));
    }
    Json::new(out).object().end();
    Ok(())
};

pub(super) fn network<'a>(node: &Node<'a>) -> Result<&'a Arc<P2p>, RpcError> {
    let missing = "Error: Peer-to-peer functionality missing or disabled";
    node.rpc.network.get().ok_or_else(|| RpcError::new(Code::PeersDisabled, missing))
}

fn not_changed(error: AddNodeError) -> RpcError {
    match error {
        AddNodeError::Known => RpcError::new(Code::NodeAlreadyAdded, "Error: Node already added"),
        AddNodeError::Unknown => RpcError::new(
            Code::NodeNotAdded,
            "Error: Node could not be removed. It has not been added previously.",
        ),
    }
}

pub(super) const GETBLOCKFROMPEER: Call = |node, args, out| {
    let hash = args.block_hash(0, "blockhash")?;
    let peer = args.integer::<i64>(1)?;
    let network = network(node)?;
    let place =
        node.engine.chain().header_place(&hash).ok_or_else(|| failed("Block header missing"))?;
    if node.engine.config().prune.is_some() && place.height > node.engine.chain().tip().height {
        // Its block file could not be pruned before the chain gets there.
        return Err(failed(
            "In prune mode, only blocks that the node has already synced previously can be fetched from a peer",
        ));
    }
    if place.has_data {
        return Err(failed("Block already downloaded"));
    }
    let id = u64::try_from(peer).map_err(|_| failed("Peer does not exist"))?;
    network.sync.fetch_block(id, &place).map_err(|error| failed(error.to_string()))?;
    Json::new(out).object().end();
    Ok(())
};

fn failed(text: impl Into<Cow<'static, str>>) -> RpcError {
    RpcError::new(Code::Misc, text)
}
