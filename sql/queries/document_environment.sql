select * from environments where environment_digest = $digest
