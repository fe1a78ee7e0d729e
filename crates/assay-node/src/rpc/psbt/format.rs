//! Partially signed transaction (BIP174 and, as version 2, BIP370): parsing, serialization and merging.

use std::collections::HashSet;

use assay_wire::{Encoding, OutPoint, Transaction, TxBuilder, Txid, encode};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::fields::{
    Fault, Fields, RANK_FINAL, RANK_PROPRIETARY, Reader, Scope, expect_key, fault, global, input,
    output, read_map, read_tx,
};
use crate::rpc::sign_raw::Spent;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Psbt {
    /// 0 or 2.
    pub(super) version: u32,
    pub(super) tx_version: u32,
    pub(super) fallback_locktime: Option<u32>,
    /// Modifiable flags (BIP370): bit 0 inputs, bit 1 outputs; bit 2: an input has a signature with `SIGHASH_SINGLE`.
    pub(super) modifiable: Option<u8>,
    pub(super) fields: Fields,
    pub(super) inputs: Vec<Input>,
    pub(super) outputs: Vec<Output>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Input {
    pub(super) prevout: OutPoint,
    pub(super) sequence: Option<u32>,
    /// Minimum lock time of the input, as a time and as a height (BIP370).
    pub(super) time_locktime: Option<u32>,
    pub(super) height_locktime: Option<u32>,
    pub(super) fields: Fields,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Output {
    pub(super) value: i64,
    pub(super) script: Vec<u8>,
    pub(super) fields: Fields,
}

impl Psbt {
    /// PSBT of a transaction, without its unlocking data.
    pub(super) fn new(tx: &Transaction, version: u32) -> Self {
        let view = tx.view();
        let input = |prevout, sequence| Input {
            prevout,
            sequence: Some(sequence),
            time_locktime: None,
            height_locktime: None,
            fields: Fields::default(),
        };
        let output = |value, script: &[u8]| Output {
            value,
            script: script.to_vec(),
            fields: Fields::default(),
        };
        Self {
            version,
            tx_version: view.version().cast_unsigned(),
            fallback_locktime: Some(view.lock_time()),
            modifiable: None,
            fields: Fields::default(),
            inputs: view.inputs().map(|one| input(one.prevout, one.sequence)).collect(),
            outputs: view.outputs().map(|one| output(one.value, one.script_pubkey)).collect(),
        }
    }

    /// Parses base64. The error is Core's, without "TX decode failed".
    pub(super) fn decode(text: &str) -> Result<Self, Fault> {
        let Ok(raw) = STANDARD.decode(text) else { return fault("invalid base64") };
        Self::from_bytes(&raw)
    }

    pub(super) fn from_bytes(raw: &[u8]) -> Result<Self, Fault> {
        let mut reader = Reader(raw);
        // Core's text of a C++ stream error ends with its category.
        let psbt = Self::read(&mut reader).map_err(|text| format!("{text}: iostream error"))?;
        if reader.0.is_empty() { Ok(psbt) } else { fault("extra data after PSBT") }
    }

    pub(super) fn encode(&self) -> String {
        STANDARD.encode(self.to_bytes())
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, Fault> {
        if reader.array()? != *MAGIC {
            return fault("Invalid PSBT magic bytes");
        }
        let (mut header, records) = Header::read(reader)?;
        let mut psbt = header.check(records)?;
        let (input_count, output_count) = (header.input_count, header.output_count);
        let blank = std::mem::take(&mut psbt.inputs);
        let mut blank = blank.into_iter();
        while !reader.0.is_empty() && (psbt.inputs.len() as u64) < input_count {
            let input = Input::read(reader, blank.next())?;
            if let Some(tx) = input.previous_tx() {
                if tx.view().txid() != input.prevout.txid {
                    return fault("Non-witness UTXO does not match outpoint hash");
                }
                if input.prevout.vout as usize >= tx.view().output_count() {
                    return fault("Input specifies output index that does not exist");
                }
            }
            psbt.inputs.push(input);
        }
        if psbt.inputs.len() as u64 != input_count {
            return fault("Inputs provided does not match the number of inputs in transaction.");
        }
        let blank = std::mem::take(&mut psbt.outputs);
        let mut blank = blank.into_iter();
        while !reader.0.is_empty() && (psbt.outputs.len() as u64) < output_count {
            psbt.outputs.push(Output::read(reader, blank.next())?);
        }
        if psbt.outputs.len() as u64 != output_count {
            return fault("Outputs provided does not match the number of outputs in transaction.");
        }
        Ok(psbt)
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        if self.version < 2 {
            record(&mut out, &[global::UNSIGNED_TX], &self.unsigned_bytes().unwrap_or_default());
        }
        let is_early = |rank| rank < RANK_PROPRIETARY;
        records(&mut out, &self.fields, is_early);
        if self.version >= 2 {
            record(&mut out, &[global::TX_VERSION], &self.tx_version.to_le_bytes());
            optional(&mut out, global::FALLBACK_LOCKTIME, self.fallback_locktime);
            let counts = [
                (global::INPUT_COUNT, self.inputs.len()),
                (global::OUTPUT_COUNT, self.outputs.len()),
            ];
            for (kind, count) in counts {
                let mut value = Vec::new();
                encode::compact_size(&mut value, count as u64);
                record(&mut out, &[kind], &value);
            }
            if let Some(flags) = self.modifiable {
                record(&mut out, &[global::TX_MODIFIABLE], &[flags]);
            }
            record(&mut out, &[global::VERSION], &self.version.to_le_bytes());
        }
        records(&mut out, &self.fields, |rank| !is_early(rank));
        out.push(0);
        self.inputs.iter().for_each(|input| input.write(self.version, &mut out));
        self.outputs.iter().for_each(|output| output.write(self.version, &mut out));
        out
    }

    /// Lock time that satisfies all inputs; `None` if impossible.
    pub(super) fn lock_time(&self) -> Option<u32> {
        let fallback = self.fallback_locktime.unwrap_or(0);
        if self.version < 2 {
            return Some(fallback);
        }
        let (mut time, mut height) = (Some(0), Some(0));
        for input in &self.inputs {
            match (input.time_locktime, input.height_locktime) {
                (Some(_), None) => height = None,
                (None, Some(_)) => time = None,
                _ => {}
            }
            if time.is_none() && height.is_none() {
                return None;
            }
            time = time.map(|time| time.max(input.time_locktime.unwrap_or(0)));
            height = height.map(|height| height.max(input.height_locktime.unwrap_or(0)));
        }
        let set = |lock: Option<u32>| lock.filter(|lock| *lock > 0);
        Some(set(height).or_else(|| set(time)).unwrap_or(fallback))
    }

    fn unsigned_bytes(&self) -> Option<Vec<u8>> {
        let mut tx = TxBuilder::new(self.tx_version.cast_signed()).lock_time(self.lock_time()?);
        for input in &self.inputs {
            tx = tx.spend(input.prevout, &[], input.sequence.unwrap_or(u32::MAX));
        }
        for output in &self.outputs {
            tx = tx.output(output.value, &output.script);
        }
        Some(tx.bytes())
    }

    /// Unsigned transaction; `None` if the required lock times exclude each other.
    pub(super) fn unsigned_tx(&self) -> Option<Transaction> {
        Transaction::parse(self.unsigned_bytes()?, Encoding::Legacy).ok()
    }

    /// Identifier common to all PSBTs of one transaction.
    fn unique_id(&self) -> Option<Txid> {
        let mut plain = self.clone();
        if self.version >= 2 {
            plain.inputs.iter_mut().for_each(|input| input.sequence = Some(0));
        }
        plain.unsigned_tx().map(|tx| tx.view().txid())
    }

    /// Merges another PSBT of the same transaction; false for another transaction.
    pub(super) fn merge(&mut self, other: &Self) -> bool {
        let id = self.unique_id();
        if id.is_none() || id != other.unique_id() || self.version != other.version {
            return false;
        }
        for (input, other) in self.inputs.iter_mut().zip(&other.inputs) {
            input.fields.merge(Scope::Input, &other.fields);
            input.sequence = input.sequence.or(other.sequence);
            input.time_locktime = input.time_locktime.or(other.time_locktime);
            input.height_locktime = input.height_locktime.or(other.height_locktime);
        }
        for (output, other) in self.outputs.iter_mut().zip(&other.outputs) {
            output.fields.merge(Scope::Output, &other.fields);
        }
        self.merge_xpubs(other);
        self.fallback_locktime = self.fallback_locktime.or(other.fallback_locktime);
        if self.modifiable.is_some() || other.modifiable.is_some() {
            let (one, two) = (self.modifiable.unwrap_or(0), other.modifiable.unwrap_or(0));
            self.modifiable = Some(one & two | (one | two) & HAS_SINGLE);
        }
        for (_, key, value) in other.fields.all().filter(|(rank, ..)| *rank >= RANK_PROPRIETARY) {
            self.fields.add(Scope::Global, key.to_vec(), value.to_vec());
        }
        true
    }

    /// Merges extended keys; existing origins stay.
    pub(super) fn merge_xpubs(&mut self, other: &Self) {
        let known = self.fields.of(global::XPUB).map(|(xpub, _)| xpub.to_vec());
        let known: HashSet<Vec<u8>> = known.collect();
        for (xpub, origin) in other.fields.of(global::XPUB) {
            if !known.contains(xpub) {
                let key = [&[global::XPUB], xpub].concat();
                self.fields.add(Scope::Global, key, origin.to_vec());
            }
        }
    }
}

/// Global records stored as fields.
#[derive(Default)]
struct Header {
    tx: Option<Transaction>,
    version: u32,
    tx_version: Option<u32>,
    fallback_locktime: Option<u32>,
    input_count: u64,
    output_count: u64,
    has_counts: [bool; 2],
    modifiable: Option<u8>,
}

impl Header {
    fn read(reader: &mut Reader<'_>) -> Result<(Self, Fields), Fault> {
        let mut header = Self::default();
        let fields =
            read_map(reader, Scope::Global, |kind, key, reader| header.take(kind, key, reader))?;
        Ok((header, fields))
    }

    fn take(&mut self, kind: u8, key: &[u8], reader: &mut Reader<'_>) -> Result<bool, Fault> {
        let number = |reader: &mut Reader<'_>| reader.array().map(u32::from_le_bytes);
        match kind {
            global::UNSIGNED_TX => {
                expect_key("Global Unsigned TX", key, 1)?;
                let tx = reader.sized(|reader| read_tx(reader, Encoding::Legacy))?;
                if tx.view().inputs().any(|input| !input.script_sig.is_empty()) {
                    return fault(
                        "Unsigned tx does not have empty scriptSigs and scriptWitnesses.",
                    );
                }
                self.input_count = tx.view().input_count() as u64;
                self.output_count = tx.view().output_count() as u64;
                self.tx = Some(tx);
            }
            global::TX_VERSION => {
                expect_key("Global Transaction Version", key, 1)?;
                self.tx_version = Some(reader.sized(number)?);
            }
            global::FALLBACK_LOCKTIME => {
                expect_key("Global Fallback Locktime", key, 1)?;
                self.fallback_locktime = Some(reader.sized(number)?);
            }
            global::INPUT_COUNT => {
                expect_key("Global Input Count", key, 1)?;
                self.input_count = reader.sized(Reader::compact_size)?;
                self.has_counts[0] = true;
            }
            global::OUTPUT_COUNT => {
                expect_key("Global Output Count", key, 1)?;
                self.output_count = reader.sized(Reader::compact_size)?;
                self.has_counts[1] = true;
            }
            global::TX_MODIFIABLE => {
                expect_key("Global TX Modifiable Flags", key, 1)?;
                self.modifiable = Some(reader.sized(Reader::array::<1>)?[0]);
            }
            global::VERSION => {
                expect_key("Global PSBT Version", key, 1)?;
                self.version = reader.sized(number)?;
                if self.version > 2 {
                    return fault("Unsupported version number");
                }
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Checks the global records; adds the inputs and outputs of the transaction, if any.
    fn check(&mut self, fields: Fields) -> Result<Psbt, Fault> {
        let given = [
            ("TX_VERSION", self.tx_version.is_some()),
            ("FALLBACK_LOCKTIME", self.fallback_locktime.is_some()),
            ("INPUT_COUNT", self.has_counts[0]),
            ("OUTPUT_COUNT", self.has_counts[1]),
            ("TX_MODIFIABLE", self.modifiable.is_some()),
        ];
        match (self.version, self.tx.take()) {
            (0, None) => fault("No unsigned transaction was provided"),
            (0, Some(tx)) => match given.iter().find(|(_, is_given)| *is_given) {
                Some((name, _)) => Err(format!("PSBT_GLOBAL_{name} is not allowed in PSBTv0")),
                None => Ok(Psbt { fields, ..Psbt::new(&tx, 0) }),
            },
            (1, _) => fault("There is no PSBT version 1"),
            (_, tx) => {
                let missing =
                    [given[0], given[2], given[3]].into_iter().find(|(_, is_given)| !is_given);
                if let Some((name, _)) = missing {
                    return Err(format!("PSBT_GLOBAL_{name} is required in PSBTv2"));
                }
                if tx.is_some() {
                    return fault("PSBT_GLOBAL_UNSIGNED_TX is not allowed in PSBTv2");
                }
                Ok(Psbt {
                    version: 2,
                    tx_version: self.tx_version.unwrap_or_default(),
                    fallback_locktime: self.fallback_locktime,
                    modifiable: self.modifiable,
                    fields,
                    inputs: Vec::new(),
                    outputs: Vec::new(),
                })
            }
        }
    }
}

impl Input {
    /// Parses an input; without `of_tx`, its outpoint is among the records (version 2).
    fn read(reader: &mut Reader<'_>, of_tx: Option<Self>) -> Result<Self, Fault> {
        let is_v2 = of_tx.is_none();
        let (mut txid, mut vout) = (None, None);
        let mut out = of_tx.unwrap_or(Self {
            prevout: OutPoint { txid: Txid::default(), vout: 0 },
            sequence: None,
            time_locktime: None,
            height_locktime: None,
            fields: Fields::default(),
        });
        out.fields = read_map(reader, Scope::Input, |kind, key, reader| {
            let name = match kind {
                input::PREVIOUS_TXID => "Previous TXID",
                input::OUTPUT_INDEX => "Previous Output's Index",
                input::SEQUENCE => "Sequence",
                input::TIME_LOCKTIME => "Required Time Based Locktime",
                input::HEIGHT_LOCKTIME => "Required Height Based Locktime",
                _ => return Ok(false),
            };
            expect_key(&format!("Input {name}"), key, 1)?;
            if !is_v2 {
                let name = name[..1].to_owned() + &name[1..].to_lowercase();
                return Err(format!("{name} is not allowed in PSBTv0"));
            }
            if kind == input::PREVIOUS_TXID {
                txid = Some(Txid(reader.sized(Reader::array)?));
                return Ok(true);
            }
            let number = reader.sized(|reader| reader.array().map(u32::from_le_bytes))?;
            match kind {
                input::OUTPUT_INDEX => vout = Some(number),
                input::SEQUENCE => out.sequence = Some(number),
                input::TIME_LOCKTIME if number < LOCKTIME_THRESHOLD => {
                    return fault("Required time based locktime is invalid (less than 500000000)");
                }
                input::TIME_LOCKTIME => out.time_locktime = Some(number),
                _ if number >= LOCKTIME_THRESHOLD => {
                    return fault(
                        "Required height based locktime is invalid (greater than or equal to 500000000)",
                    );
                }
                _ if number == 0 => {
                    return fault("Required height based locktime is invalid (0)");
                }
                _ => out.height_locktime = Some(number),
            }
            Ok(true)
        })?;
        if is_v2 {
            let Some(txid) = txid else { return fault("Previous TXID is required in PSBTv2") };
            let Some(vout) = vout else {
                return fault("Previous output's index is required in PSBTv2");
            };
            out.prevout = OutPoint { txid, vout };
        }
        Ok(out)
    }

    fn write(&self, version: u32, out: &mut Vec<u8>) {
        let is_final = self.is_final();
        for (rank, key, value) in self.fields.all().filter(|(rank, ..)| *rank < RANK_FINAL) {
            if rank == input::NON_WITNESS_UTXO {
                let tx = Transaction::parse(value.to_vec(), Encoding::Segwit);
                let stripped = tx.map(|tx| tx.view().stripped_parts().concat());
                record(out, key, &stripped.unwrap_or_default());
            } else if !is_final || rank == input::WITNESS_UTXO {
                record(out, key, value);
            }
        }
        records(out, &self.fields, |rank| rank == RANK_FINAL);
        if version >= 2 {
            record(out, &[input::PREVIOUS_TXID], &self.prevout.txid.0);
            record(out, &[input::OUTPUT_INDEX], &self.prevout.vout.to_le_bytes());
            optional(out, input::SEQUENCE, self.sequence);
            optional(out, input::TIME_LOCKTIME, self.time_locktime);
            optional(out, input::HEIGHT_LOCKTIME, self.height_locktime);
        }
        records(out, &self.fields, |rank| rank > RANK_FINAL);
        out.push(0);
    }

    /// True with a final script sig or witness.
    pub(super) fn is_final(&self) -> bool {
        self.fields.has(input::SCRIPT_SIG) || self.fields.has(input::SCRIPT_WITNESS)
    }

    pub(super) fn previous_tx(&self) -> Option<Transaction> {
        let raw = self.fields.get(input::NON_WITNESS_UTXO)?;
        Transaction::parse(raw.to_vec(), Encoding::Segwit).ok()
    }

    /// Spent output, if the PSBT contains it.
    pub(super) fn spent(&self) -> Option<Spent> {
        if let Some(tx) = self.previous_tx() {
            let output = tx.view().outputs().nth(self.prevout.vout as usize)?;
            let is_same = tx.view().txid() == self.prevout.txid;
            let spent = Spent { value: output.value, script: output.script_pubkey.to_vec() };
            return is_same.then_some(spent);
        }
        self.witness_utxo()
    }

    /// Spent output without its transaction.
    pub(super) fn witness_utxo(&self) -> Option<Spent> {
        let (value, script) = self.fields.get(input::WITNESS_UTXO)?.split_first_chunk()?;
        let script = Reader(script).var_bytes().ok()?.to_vec();
        Some(Spent { value: i64::from_le_bytes(*value), script })
    }

    pub(super) fn set_witness_utxo(&mut self, spent: &Spent) {
        let mut value = spent.value.to_le_bytes().to_vec();
        encode::var_bytes(&mut value, &spent.script);
        self.fields.set(Scope::Input, input::WITNESS_UTXO, value);
    }

    pub(super) fn sighash(&self) -> Option<i32> {
        self.fields.get(input::SIGHASH)?.try_into().ok().map(i32::from_le_bytes)
    }

    pub(super) fn final_script_sig(&self) -> &[u8] {
        self.fields.get(input::SCRIPT_SIG).unwrap_or_default()
    }

    pub(super) fn final_witness(&self) -> Vec<Vec<u8>> {
        let mut reader = Reader(self.fields.get(input::SCRIPT_WITNESS).unwrap_or_default());
        let count = reader.compact_size().unwrap_or(0);
        (0..count).map_while(|_| reader.var_bytes().ok().map(<[u8]>::to_vec)).collect()
    }
}

impl Output {
    fn read(reader: &mut Reader<'_>, of_tx: Option<Self>) -> Result<Self, Fault> {
        let is_v2 = of_tx.is_none();
        let (mut value, mut script) = (None, None);
        let fields = read_map(reader, Scope::Output, |kind, key, reader| {
            let name = match kind {
                output::AMOUNT => "Amount",
                output::SCRIPT => "Script",
                _ => return Ok(false),
            };
            expect_key(&format!("Output {name}"), key, 1)?;
            if !is_v2 {
                let name = name.to_lowercase();
                return Err(format!("Output {name} is not allowed in PSBTv0"));
            }
            match kind {
                output::AMOUNT => value = Some(i64::from_le_bytes(reader.sized(Reader::array)?)),
                _ => script = Some(reader.var_bytes()?.to_vec()),
            }
            Ok(true)
        })?;
        if let Some(of_tx) = of_tx {
            return Ok(Self { fields, ..of_tx });
        }
        let Some(value) = value else { return fault("Output amount is required in PSBTv2") };
        let Some(script) = script else { return fault("Output script is required in PSBTv2") };
        Ok(Self { value, script, fields })
    }

    fn write(&self, version: u32, out: &mut Vec<u8>) {
        records(out, &self.fields, |rank| rank <= output::BIP32_DERIVATION);
        if version >= 2 {
            record(out, &[output::AMOUNT], &self.value.to_le_bytes());
            record(out, &[output::SCRIPT], &self.script);
        }
        records(out, &self.fields, |rank| rank > output::BIP32_DERIVATION);
        out.push(0);
    }
}

fn record(out: &mut Vec<u8>, key: &[u8], value: &[u8]) {
    encode::var_bytes(out, key);
    encode::var_bytes(out, value);
}

fn optional(out: &mut Vec<u8>, kind: u8, value: Option<u32>) {
    if let Some(value) = value {
        record(out, &[kind], &value.to_le_bytes());
    }
}

fn records(out: &mut Vec<u8>, fields: &Fields, is_wanted: impl Fn(u8) -> bool) {
    for (_, key, value) in fields.all().filter(|(rank, ..)| is_wanted(*rank)) {
        record(out, key, value);
    }
}

const MAGIC: &[u8; 5] = b"psbt\xff";
const HAS_SINGLE: u8 = 4;
/// Lock times from here on are times.
const LOCKTIME_THRESHOLD: u32 = 500_000_000;
