//! Why connections end.

/// Why a connection ends. The names are labels of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::server) enum DisconnectReason {
    /// The client disconnected.
    Left,
    /// The server stops.
    Stopping,
    /// The client does not read responses.
    SlowReader,
    /// Too much is queued for all clients together, and most of it for the address of this one.
    OutputFull,
    /// Line too long.
    Oversize,
    /// No request for too long.
    Idle,
    /// No first request.
    NoRequest,
    /// Too many rejected requests in a row.
    Refused,
    /// No protocol version in common.
    Version,
    /// The TLS handshake failed.
    Handshake,
    /// No memory for its long line.
    InputFull,
    /// A defect of ours.
    Defect,
}

impl DisconnectReason {
    pub(in crate::server) const ALL: [Self; 12] = [
        Self::Left,
        Self::Stopping,
        Self::SlowReader,
        Self::OutputFull,
        Self::Oversize,
        Self::Idle,
        Self::NoRequest,
        Self::Refused,
        Self::Version,
        Self::Handshake,
        Self::InputFull,
        Self::Defect,
    ];

    pub(in crate::server) const fn name(self) -> &'static str {
        match self {
            Self::Left => "left",
            Self::Stopping => "stopping",
            Self::SlowReader => "slow-reader",
            Self::OutputFull => "output-full",
            Self::Oversize => "oversize-line",
            Self::Idle => "idle",
            Self::NoRequest => "no-request",
            Self::Refused => "too-many-refusals",
            Self::Version => "protocol-version",
            Self::Handshake => "tls-handshake",
            Self::InputFull => "input-full",
            Self::Defect => "defect",
        }
    }
}
