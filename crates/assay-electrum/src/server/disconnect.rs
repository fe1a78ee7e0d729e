//! Disconnect reasons.

/// Disconnect reason. The names are labels of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::server) enum DisconnectReason {
    /// The client closed the connection.
    Left,
    Stopping,
    SlowReader,
    /// The send memory of all clients is exhausted, and this client's address uses the most.
    OutputFull,
    Oversize,
    Idle,
    /// Timeout of the first request.
    NoRequest,
    Refused,
    Version,
    Handshake,
    InputFull,
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
