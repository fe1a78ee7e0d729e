//! Server methods.

use super::Call;
use crate::server::DisconnectReason;
use crate::server::protocol::{CallError, Offer, Out, RpcError, SOFTWARE, Version};

const NAME_BYTES_MAX: usize = 100;

/// Maximum ping response: large enough to resemble any other response.
const PONG_BYTES_MAX: usize = 1 << 20;

pub(super) fn version(call: &Call<'_>, out: &mut Out) -> Result<(), CallError> {
    let name = match call.params.raw(0) {
        Some(_) => call.params.text(0)?,
        None => String::new(),
    };
    let offer = match call.params.raw(1) {
        Some(raw) => {
            let wrong = || RpcError::bad("protocol_version should be a version or two of them");
            Offer::read(raw).ok_or_else(wrong)?
        }
        None => Offer { min: Version::MIN, max: Version::MIN },
    };
    let Some(chosen) = offer.choose(Version::MAX) else {
        call.session.disconnect_after_response(DisconnectReason::Version);
        let message = format!("unsupported protocol version: {} to {}", offer.min, offer.max);
        return Err(RpcError::bad(message).into());
    };
    let short: String = name.chars().filter(|c| !c.is_control()).take(NAME_BYTES_MAX).collect();
    if !call.session.negotiate(chosen, &short) {
        return Err(RpcError::bad("server.version already sent").into());
    }
    out.raw("[").string(SOFTWARE).raw(",\"").raw(&chosen.to_string()).raw("\"]");
    Ok(())
}

pub(super) fn features(call: &Call<'_>, out: &mut Out) -> Result<(), CallError> {
    let snapshot = call.snapshot()?;
    let genesis = snapshot.view.block_hash(0)?;
    out.raw("{\"hosts\":{");
    for (index, host) in call.shared.config.hosts.iter().enumerate() {
        out.raw(if index > 0 { "," } else { "" }).string(&host.name).raw(":{");
        let ports = [("tcp_port", host.tcp_port), ("ssl_port", host.ssl_port)];
        let ports = ports.into_iter().filter_map(|(name, port)| Some((name, port?)));
        for (index, (name, port)) in ports.enumerate() {
            out.raw(if index > 0 { "," } else { "" }).string(name).raw(":").int(port);
        }
        out.raw("}");
    }
    out.raw("},\"pruning\":null,\"server_version\":").string(SOFTWARE);
    out.raw(",\"protocol_min\":\"").raw(&Version::MIN.to_string());
    out.raw("\",\"protocol_max\":\"").raw(&Version::MAX.to_string()).raw("\"");
    if let Some(genesis) = genesis {
        out.raw(",\"genesis_hash\":").hash(&genesis.0);
    }
    // Protocol 1.7 has no other hash function.
    if call.version < Version(1, 7, 0) {
        out.raw(",\"hash_function\":\"sha256\"");
    }
    out.raw("}");
    Ok(())
}

#[expect(clippy::unnecessary_wraps, reason = "as the table has it")]
pub(super) fn banner(call: &Call<'_>, out: &mut Out) -> Result<(), CallError> {
    out.string(&call.shared.config.banner);
    Ok(())
}

#[expect(clippy::unnecessary_wraps, reason = "as the table has it")]
pub(super) fn donation_address(call: &Call<'_>, out: &mut Out) -> Result<(), CallError> {
    out.string(&call.shared.config.donation_address);
    Ok(())
}

/// `server.peers.subscribe`: always empty, since there is no peer discovery.
#[expect(clippy::unnecessary_wraps, reason = "as the table has it")]
pub(super) fn peers(_: &Call<'_>, out: &mut Out) -> Result<(), CallError> {
    out.raw("[]");
    Ok(())
}

/// `server.add_peer`: always rejected, for the same reason.
pub(super) fn add_peer(call: &Call<'_>, out: &mut Out) -> Result<(), CallError> {
    if !call.params.raw(0).is_some_and(|features| features.get().starts_with('{')) {
        return Err(RpcError::bad("features should be an object").into());
    }
    out.raw("false");
    Ok(())
}

pub(super) fn ping(call: &Call<'_>, out: &mut Out) -> Result<(), CallError> {
    if call.version < Version(1, 7, 0) {
        out.raw("null");
        return Ok(());
    }
    let length = call.params.number_or(0, 0)? as usize;
    if call.params.raw(1).is_some() {
        let data = call.params.text(1)?;
        if !data.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(RpcError::bad("data should be a hex string").into());
        }
    }
    if length > PONG_BYTES_MAX {
        return Err(RpcError::bad("pong_len value too high").into());
    }
    out.raw("{\"data\":\"").raw(&"0".repeat(length)).raw("\"}");
    Ok(())
}
