-- Standings are the places that saved leaderboard answers show, with the scores that these state.
with boards as (
    select locator, gpu, stack_version, places, problem
    from leaderboards
    left join problems
        on problems.source = 'sol-execbench' and problems.upstream_id = leaderboards.kernel_id::varchar
),

-- rank, username and sol_score
shown as (
    select locator, gpu, unnest(places, recursive := true) from boards
),

ours as (
    select locator, gpu, authors.author_name as username, position, standings.sol_score
    from boards
    join standings
        on standings.source = 'sol-execbench'
        and standings.problem = boards.problem
        and standings.runner = gpu
        and standings.stack_version = boards.stack_version
    join authors using (author_key)
)

select
    locator || ': ' || coalesce(username, 'somebody without a name') || ' on ' || gpu || ' has '
    || coalesce('place ' || rank || coalesce(' with ' || shown.sol_score, ''), 'no place') || ' there, '
    || coalesce('place ' || position || ' with ' || ours.sol_score, 'none') || ' here' as found
from shown
full join ours using (locator, gpu, username)
where rank is distinct from position or shown.sol_score <> ours.sol_score
order by locator, gpu, coalesce(rank, position), username
