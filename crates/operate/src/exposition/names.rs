//! The naming schemes, and the place of a node that some of them show in labels.

/// Under which exporter's names Cassandra's metrics are shown. Each is a function of a metric's identity.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Names {
    /// jmx_exporter with its own example for Cassandra.
    #[default]
    JmxExporter,
    /// The metrics endpoint of k8ssandra's management API.
    ManagementApi,
    /// cassandra-exporter of zegelin and Instaclustr.
    Instaclustr,
    /// cassandra_exporter of Criteo.
    Criteo,
    /// OpenTelemetry's rules for JMX, as a collector hands them to Prometheus.
    OpenTelemetry,
}

impl Names {
    pub const ALL: [Names; 5] = [
        Names::JmxExporter,
        Names::ManagementApi,
        Names::Instaclustr,
        Names::Criteo,
        Names::OpenTelemetry,
    ];

    /// As the setting `metrics_names` and the parameter `names` have it.
    pub const fn name(self) -> &'static str {
        match self {
            Names::JmxExporter => "jmx_exporter",
            Names::ManagementApi => "management-api",
            Names::Instaclustr => "instaclustr",
            Names::Criteo => "criteo",
            Names::OpenTelemetry => "otel",
        }
    }
}

/// The error lists the schemes.
impl std::str::FromStr for Names {
    type Err = String;

    fn from_str(name: &str) -> Result<Names, String> {
        let known = Names::ALL.into_iter().find(|names| names.name() == name);
        known.ok_or_else(|| {
            format!(
                "unknown names '{name}'; expected one of {}",
                Names::ALL.map(Names::name).join(", ")
            )
        })
    }
}

/// Who a node is among others.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeIdentity {
    pub cluster: String,
    pub datacenter: String,
    pub rack: String,
    /// The address that other nodes know.
    pub address: String,
    pub host_id: String,
}
