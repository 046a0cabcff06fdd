//! Schedules and tasks: what is asked of them goes to the desk that keeps them.

use super::{Answer, Service};
use longhaul_api::agents::ScheduleRequest;
use longhaul_core::fault;

impl Service {
    pub(super) async fn schedules(&self, wanted: ScheduleRequest) -> fault::Result<Answer> {
        Ok(Answer::Schedules { said: Box::new(self.agents.schedules(wanted).await?) })
    }
}
