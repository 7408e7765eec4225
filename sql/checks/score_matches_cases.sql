-- Scores that their own cases contradict under the board's rule; the runs are flagged and stay.
select problem || ', ' || submission_key || ': the score is not what its cases give' as found
from runs
where list_contains(flags, 'SCORE_MISMATCH')
group by problem, submission_key
