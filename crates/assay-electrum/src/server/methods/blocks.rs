//! Header methods.

use super::Call;
use crate::server::merkle::HeaderProof;
use crate::server::protocol::{CallError, Out, RpcError, Version};
use crate::server::snapshot::{Snapshot, write_tip};

/// Headers per response: a difficulty period, the usual request of clients.
const HEADERS_MAX: u32 = 2016;
/// Headers per non-blocking call.
const HEADERS_AT_ONCE_MAX: u32 = 128;

pub(super) fn header(call: &Call<'_>, out: &mut Out) -> Result<(), CallError> {
    let height = call.params.number(0)?;
    let cp_height = call.params.number_or(1, 0)?;
    let snapshot = call.snapshot()?;
    let header = snapshot.view.header(height)?.filter(|_| height <= snapshot.tip.height);
    let header = header.ok_or_else(|| RpcError::bad(format!("height {height} out of range")))?;
    if cp_height == 0 {
        out.hex(&header);
        return Ok(());
    }
    let proof = proof(call, &snapshot, height, cp_height)?;
    out.raw("{\"header\":").hex(&header);
    write_proof(out, &proof);
    out.raw("}");
    Ok(())
}

pub(super) fn headers(call: &Call<'_>, out: &mut Out) -> Result<(), CallError> {
    let start = call.params.number(0)?;
    let count = call.params.number(1)?;
    let cp_height = call.params.number_or(2, 0)?;
    let snapshot = call.snapshot()?;
    let available = (snapshot.tip.height + 1).saturating_sub(start);
    let count = count.min(HEADERS_MAX).min(available);
    if count > HEADERS_AT_ONCE_MAX {
        call.may_wait()?;
    }
    let headers = match count {
        0 => Vec::new(),
        _ => snapshot.view.headers(start, count as usize)?,
    };
    let proof = match (count, cp_height) {
        (0, _) | (_, 0) => None,
        _ => Some(proof(call, &snapshot, start + count - 1, cp_height)?),
    };
    out.raw("{\"count\":").int(count);
    if call.version >= Version(1, 6, 0) {
        out.raw(",\"headers\":").array(headers.chunks_exact(80), |out, header| {
            out.hex(header);
        });
    } else {
        out.raw(",\"hex\":").hex(&headers);
    }
    out.raw(",\"max\":").int(HEADERS_MAX);
    if let Some(proof) = proof {
        write_proof(out, &proof);
    }
    out.raw("}");
    Ok(())
}

pub(super) fn subscribe(call: &Call<'_>, out: &mut Out) -> Result<(), CallError> {
    // Subscribe first: the tip may be sent twice, but never missed.
    call.session.subscribe_headers(call.shared);
    write_tip(out, &*call.snapshot()?);
    Ok(())
}

fn proof(
    call: &Call<'_>,
    snapshot: &Snapshot,
    height: u32,
    cp_height: u32,
) -> Result<HeaderProof, CallError> {
    // The tree may have to catch up with the chain.
    call.may_wait()?;
    let proof = call.shared.header_tree.proof(&snapshot.view, height, cp_height)?;
    proof.ok_or_else(|| {
        let tip = snapshot.tip.height;
        let message = format!(
            "require header height {height} <= cp_height {cp_height} <= chain height {tip}"
        );
        RpcError::bad(message).into()
    })
}

fn write_proof(out: &mut Out, proof: &HeaderProof) {
    out.raw(",\"branch\":").hashes(&proof.branch);
    out.raw(",\"root\":").hash(&proof.root);
}
