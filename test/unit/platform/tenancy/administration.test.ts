import { describe, expect, it } from 'vitest'
import { newId } from '../../../../src/foundation/base/index.ts'
import type { Db } from '../../../../src/foundation/database/index.ts'
import { execute } from '../../../../src/foundation/database/index.ts'
import {
  bootstrap,
  type CascadeDelete,
  createApiToken,
  createEnvironment,
  createTeam,
  deleteApiToken,
  deleteEnvironment,
  deleteTeam,
  getApiToken,
  getEnvironment,
  getTeam,
  listApiTokens,
  listEnvironments,
  listTeams,
  revokeApiToken,
  updateApiToken,
  updateEnvironment,
  updateTeam,
} from '../../../../src/platform/tenancy/index.ts'
import { testDatabase } from '../../../support/database.ts'
import { contendForRows } from '../../../support/row-contention.ts'

const { database } = await testDatabase()
const tx = database.pool
const first = (await bootstrap(database))!
const operator = { teamId: first.teamId, isOperator: true, scopes: undefined }
const page = { before: undefined, limit: 100 }

async function newTeam(name = 'customer') {
  const team = await createTeam(tx, operator, { name })
  return { team, actor: { teamId: team.id, isOperator: false, scopes: undefined } }
}

/** Deletes what these tests create, and records the calls. */
function recordingContents() {
  const calls: string[] = []
  const contents: CascadeDelete = {
    deleteByEnvironment: async (each: Db, id) => {
      calls.push(`environment ${id}`)
      await execute(each, 'delete from sync_job where environment_id = :id', { id })
      return true
    },
    deleteIntegrationsOfTeam: async (each: Db, id) => {
      calls.push(`integrations ${id}`)
      await execute(each, 'delete from integration where team_id = :id', { id })
      return true
    },
    hideByEnvironments: async (_, ids) => void calls.push(`hide ${ids}`),
    hideIntegrationsOfTeam: async (_, id) => void calls.push(`hide integrations ${id}`),
    assertIntegrationsDeletable: async () => {},
    startDeletion: async (_, kind, id) => void calls.push(`${kind} ${id}`),
    destroyKeys: async (_, id) => void calls.push(`keys ${id}`),
  }
  return { calls, deps: { contents } }
}

async function addJob(environmentId: string): Promise<void> {
  await execute(
    tx,
    `insert into sync_job (environment_id, id, label, integration_name, resources, args_schema)
     values (:environmentId, :environmentId2, '', 'x', '[]', '{}')`,
    { environmentId, environmentId2: newId() },
  )
}

describe('createTeam', () => {
  it('fills what is not given with nothing', async () => {
    const { team } = await newTeam()
    expect(team).toMatchObject({ domain: '', logo: '', tosLink: '', isVerified: false, isOperator: false, version: 1 })
    expect(team.updatedAt).toEqual(team.createdAt)
  })

  it('is for the operator alone', async () => {
    const { actor } = await newTeam()
    await expect(createTeam(tx, actor, { name: 'x' })).rejects.toMatchObject({ reason: 'OPERATOR_TEAM_REQUIRED' })
  })
})

describe('getTeam', () => {
  it('shows a team itself, and the operator every team', async () => {
    const { team, actor } = await newTeam()
    expect(await getTeam(tx, actor, team.id)).toEqual(team)
    expect(await getTeam(tx, operator, team.id)).toEqual(team)
  })

  it('answers the same for another team and for an unknown one', async () => {
    const { actor } = await newTeam()
    for (const id of [first.teamId, newId()])
      await expect(getTeam(tx, actor, id)).rejects.toMatchObject({ reason: 'RESOURCE_NOT_FOUND', resource: { id } })
  })
})

describe('listTeams', () => {
  it('lists all for the operator, newest first, page by page', async () => {
    await newTeam()
    const all = await listTeams(tx, operator, page)
    expect(all.at(-1)?.id).toBe(first.teamId)
    expect(await listTeams(tx, operator, { before: all[0]!.id, limit: 1 })).toEqual([all[1]])
  })

  it('lists a team itself and ends there', async () => {
    const { team, actor } = await newTeam()
    expect(await listTeams(tx, actor, page)).toEqual([team])
    expect(await listTeams(tx, actor, { before: team.id, limit: 100 })).toEqual([])
  })
})

describe('updateTeam', () => {
  it('changes what is given and keeps the rest', async () => {
    const { team, actor } = await newTeam()
    const updated = await updateTeam(tx, actor, { id: team.id, domain: 'example.com', isWhiteLabel: true })
    expect(updated).toMatchObject({ name: 'customer', domain: 'example.com', isWhiteLabel: true, version: 2 })
    expect(await updateTeam(tx, actor, { id: team.id, domain: '' })).toMatchObject({ domain: '', version: 3 })
  })

  it('changes nothing when nothing is given', async () => {
    const { team, actor } = await newTeam()
    expect(await updateTeam(tx, actor, { id: team.id })).toEqual(team)
  })

  it.each([
    ['another version', 'ETAG_MISMATCH', { version: 7, name: 'x' }],
    ['another version and no change', 'ETAG_MISMATCH', { version: 7 }],
  ])('rejects %s', async (_, reason, change) => {
    const { team, actor } = await newTeam()
    await expect(updateTeam(tx, actor, { id: team.id, ...change })).rejects.toMatchObject({ reason })
  })

  it('does not find another team', async () => {
    const { actor } = await newTeam()
    const foreign = updateTeam(tx, actor, { id: first.teamId, name: 'mine now' })
    await expect(foreign).rejects.toMatchObject({ reason: 'RESOURCE_NOT_FOUND' })
    expect(await getTeam(tx, operator, first.teamId)).toMatchObject({ name: 'operator' })
  })
})

describe('deleteTeam', () => {
  it('deletes an empty team with its tokens and makes its secrets unreadable', async () => {
    const { team } = await newTeam()
    await database.transaction((tx) =>
      createApiToken(tx, operator, { kind: 'team', teamId: team.id, name: 't', scopes: { preset: 'full' } }),
    )
    const { calls, deps } = recordingContents()
    await database.transaction((each) => deleteTeam(deps, each, operator, { id: team.id }))
    await expect(getTeam(tx, operator, team.id)).rejects.toMatchObject({ reason: 'RESOURCE_NOT_FOUND' })
    expect(calls).toEqual([`keys ${team.id}`])
  })

  it('rejects a team that owns something, and with force deletes all of it', async () => {
    const { team } = await newTeam()
    const environment = await createEnvironment(tx, team.id, { name: 'e' })
    await addJob(environment.id)
    const { calls, deps } = recordingContents()
    const remove = (force: boolean) =>
      database.transaction((each) => deleteTeam(deps, each, operator, { id: team.id, force }))
    await expect(remove(false)).rejects.toMatchObject({ reason: 'RESOURCE_IN_USE' })
    await remove(true)
    expect(calls).toEqual([
      `environment ${environment.id}`,
      `keys ${environment.id}`,
      `integrations ${team.id}`,
      `keys ${team.id}`,
    ])
  })

  it.each([
    ["the operator's team, even by force", 'RESOURCE_IN_USE', () => ({ id: first.teamId, force: true })],
    ['an unknown team', 'RESOURCE_NOT_FOUND', () => ({ id: newId() })],
  ])('rejects %s', async (_, reason, input) => {
    const remove = database.transaction((each) => deleteTeam(recordingContents().deps, each, operator, input()))
    await expect(remove).rejects.toMatchObject({ reason })
  })

  it('rejects another version', async () => {
    const { team } = await newTeam()
    const remove = database.transaction((tx) =>
      deleteTeam(recordingContents().deps, tx, operator, { id: team.id, version: 2 }),
    )
    await expect(remove).rejects.toMatchObject({ reason: 'ETAG_MISMATCH' })
  })

  it('is for the operator alone', async () => {
    const { team, actor } = await newTeam()
    const remove = database.transaction((tx) => deleteTeam(recordingContents().deps, tx, actor, { id: team.id }))
    await expect(remove).rejects.toMatchObject({ reason: 'OPERATOR_TEAM_REQUIRED' })
  })
})

describe('createEnvironment', () => {
  it('rejects a name in use with the id of its environment, and leaves the transaction usable', async () => {
    const { team } = await newTeam()
    const held = await createEnvironment(tx, team.id, { name: 'prod' })
    await database.transaction(async (each) => {
      const again = createEnvironment(each, team.id, { name: 'prod' })
      await expect(again).rejects.toMatchObject({ reason: 'NAME_TAKEN', resource: { id: held.id } })
      expect(await getEnvironment(each, team.id, held.id)).toEqual(held)
    })
  })

  it('lets two teams use one name', async () => {
    const [one, two] = [await newTeam(), await newTeam()]
    await createEnvironment(tx, one.team.id, { name: 'prod' })
    expect(await createEnvironment(tx, two.team.id, { name: 'prod' })).toMatchObject({ teamId: two.team.id })
  })
})

describe('getEnvironment', () => {
  it('answers the same for one of another team and for an unknown one', async () => {
    const { team } = await newTeam()
    for (const id of [first.environmentId, newId()])
      await expect(getEnvironment(tx, team.id, id)).rejects.toMatchObject({ reason: 'RESOURCE_NOT_FOUND' })
  })
})

describe('listEnvironments', () => {
  it('lists those of the team, newest first, page by page', async () => {
    const { team } = await newTeam()
    const made = [
      await createEnvironment(tx, team.id, { name: 'a' }),
      await createEnvironment(tx, team.id, { name: 'b' }),
    ]
    const listed = await listEnvironments(tx, team.id, page)
    expect(new Set(listed.map(({ id }) => id))).toEqual(new Set(made.map(({ id }) => id)))
    expect(listed.map(({ id }) => id)).toEqual(
      listed
        .map(({ id }) => id)
        .toSorted()
        .toReversed(),
    )
    expect(await listEnvironments(tx, team.id, { before: listed[0]!.id, limit: 9 })).toEqual([listed[1]])
  })
})

describe('updateEnvironment', () => {
  it('renames, and changes nothing without a new name', async () => {
    const { team } = await newTeam()
    const environment = await createEnvironment(tx, team.id, { name: 'a' })
    const { id } = environment
    expect(await updateEnvironment(tx, team.id, { id })).toEqual(environment)
    expect(await updateEnvironment(tx, team.id, { id, name: 'a' })).toEqual(environment)
    expect(await updateEnvironment(tx, team.id, { id, name: 'b' })).toMatchObject({ name: 'b', version: 2 })
  })

  it.each([
    ['a name in use', 'NAME_TAKEN', { name: 'taken' }],
    ['another version', 'ETAG_MISMATCH', { name: 'b', version: 2 }],
  ])('rejects %s', async (_, reason, change) => {
    const { team } = await newTeam()
    await createEnvironment(tx, team.id, { name: 'taken' })
    const { id } = await createEnvironment(tx, team.id, { name: 'a' })
    await expect(updateEnvironment(tx, team.id, { id, ...change })).rejects.toMatchObject({ reason })
  })

  it('gives a name wanted by two at once to one of them', async () => {
    const { team } = await newTeam()
    const made = [
      await createEnvironment(tx, team.id, { name: 'a' }),
      await createEnvironment(tx, team.id, { name: 'b' }),
    ]
    const ids = made.map(({ id }) => id)
    const renames = ids.map((id) => () => updateEnvironment(tx, team.id, { id, name: 'c' }))
    const results = await contendForRows(database, 'environment', ids, renames)
    const rejected = results.filter((result) => result.status === 'rejected')
    expect(rejected).toMatchObject([{ reason: { reason: 'NAME_TAKEN' } }])
  })
})

describe('deleteEnvironment', () => {
  it('rejects one that holds something, and with force empties it', async () => {
    const { team } = await newTeam()
    const { id } = await createEnvironment(tx, team.id, { name: 'a' })
    await addJob(id)
    const { calls, deps } = recordingContents()
    const remove = (force: boolean) =>
      database.transaction((each) => deleteEnvironment(deps, each, team.id, { id, force }))
    await expect(remove(false)).rejects.toMatchObject({ reason: 'RESOURCE_IN_USE' })
    await remove(true)
    expect(calls).toEqual([`environment ${id}`, `keys ${id}`])
    await expect(getEnvironment(tx, team.id, id)).rejects.toMatchObject({ reason: 'RESOURCE_NOT_FOUND' })
  })

  it.each([
    ['one of another team', 'RESOURCE_NOT_FOUND', () => ({ id: first.environmentId })],
    ['an unknown one', 'RESOURCE_NOT_FOUND', () => ({ id: newId() })],
  ])('does not find %s', async (_, reason, input) => {
    const { team } = await newTeam()
    const { calls, deps } = recordingContents()
    await expect(
      database.transaction((tx) => deleteEnvironment(deps, tx, team.id, { ...input(), force: true })),
    ).rejects.toMatchObject({ reason })
    expect(calls).toEqual([])
  })

  it('rejects another version', async () => {
    const { team } = await newTeam()
    const { id } = await createEnvironment(tx, team.id, { name: 'a' })
    const remove = database.transaction((tx) =>
      deleteEnvironment(recordingContents().deps, tx, team.id, { id, version: 2 }),
    )
    await expect(remove).rejects.toMatchObject({ reason: 'ETAG_MISMATCH' })
  })
})

describe('createApiToken', () => {
  it('shows the token once and keeps only its end', async () => {
    const { apiToken, token } = await database.transaction((tx) =>
      createApiToken(tx, operator, { kind: 'team', name: 'ci', scopes: { preset: 'full' } }),
    )
    expect(token).toMatch(/^pbt_/)
    expect(JSON.stringify(await getApiToken(tx, first.teamId, apiToken.id))).not.toContain(token.slice(4, -4))
    expect(apiToken).toMatchObject({ kind: 'team', teamId: first.teamId, environmentId: null, hint: token.slice(-4) })
  })

  it('binds an environment token to an environment of the team', async () => {
    const input = {
      kind: 'environment',
      environmentId: first.environmentId,
      name: 'app',
      scopes: { preset: 'full' },
    } as const
    const { apiToken, token } = await database.transaction((tx) => createApiToken(tx, operator, input))
    expect(token).toMatch(/^pbe_/)
    expect(apiToken).toMatchObject({ kind: 'environment', environmentId: first.environmentId })
  })

  it('lets the operator make one for another team', async () => {
    const { team } = await newTeam()
    const { apiToken } = await database.transaction((tx) =>
      createApiToken(tx, operator, { kind: 'team', teamId: team.id, name: 'first', scopes: { preset: 'full' } }),
    )
    expect(apiToken.teamId).toBe(team.id)
  })

  it('rejects another team to all but the operator, and what is unknown to all', async () => {
    const { actor } = await newTeam()
    const make = (
      who: typeof actor,
      what: { kind: 'team'; teamId: string } | { kind: 'environment'; environmentId: string },
    ) => database.transaction((tx) => createApiToken(tx, who, { ...what, name: 'x', scopes: { preset: 'full' } }))
    const reasonOf = (promise: Promise<unknown>) => promise.then(String, (failure) => failure.reason)
    expect(await reasonOf(make(actor, { kind: 'team', teamId: first.teamId }))).toBe('OPERATOR_TEAM_REQUIRED')
    expect(await reasonOf(make(operator, { kind: 'team', teamId: newId() }))).toBe('RESOURCE_NOT_FOUND')
    const foreign = { kind: 'environment', environmentId: first.environmentId } as const
    expect(await reasonOf(make(actor, foreign))).toBe('RESOURCE_NOT_FOUND')
  })
})

describe('listApiTokens', () => {
  it("lists the team's, revoked ones included, and no other's", async () => {
    const { team, actor } = await newTeam()
    const { apiToken } = await database.transaction((tx) =>
      createApiToken(tx, actor, { kind: 'team', name: 'a', scopes: { preset: 'full' } }),
    )
    const revoked = await database.transaction((tx) => revokeApiToken(tx, team.id, apiToken.id))
    expect(await listApiTokens(tx, team.id, page)).toEqual([revoked])
    expect(await listApiTokens(tx, team.id, { before: apiToken.id, limit: 9 })).toEqual([])
  })
})

describe('updateApiToken', () => {
  it('renames and moves the expiry, and changes nothing when nothing is given', async () => {
    const { apiToken } = await database.transaction((tx) =>
      createApiToken(tx, operator, { kind: 'team', name: 'a', scopes: { preset: 'full' } }),
    )
    const { id } = apiToken
    expect(await updateApiToken(tx, first.teamId, { id })).toEqual(apiToken)
    const expiresAt = new Date('2030-01-01T00:00:00Z')
    const updated = await updateApiToken(tx, first.teamId, { id, expiresAt })
    expect(updated).toMatchObject({ name: 'a', expiresAt, version: 2 })
  })

  it('rejects another version and does not find one of another team', async () => {
    const { apiToken } = await database.transaction((tx) =>
      createApiToken(tx, operator, { kind: 'team', name: 'a', scopes: { preset: 'full' } }),
    )
    const { team } = await newTeam()
    const { id } = apiToken
    const stale = updateApiToken(tx, first.teamId, { id, name: 'b', version: 9 })
    await expect(stale).rejects.toMatchObject({ reason: 'ETAG_MISMATCH' })
    const foreign = updateApiToken(tx, team.id, { id, name: 'b' })
    await expect(foreign).rejects.toMatchObject({ reason: 'RESOURCE_NOT_FOUND' })
  })
})

describe('revokeApiToken', () => {
  it('keeps the first moment when repeated', async () => {
    const { apiToken } = await database.transaction((tx) =>
      createApiToken(tx, operator, { kind: 'team', name: 'a', scopes: { preset: 'full' } }),
    )
    const once = await database.transaction((tx) => revokeApiToken(tx, first.teamId, apiToken.id))
    expect(once).toMatchObject({ revokedAt: expect.any(Date), version: 2 })
    expect(await database.transaction((tx) => revokeApiToken(tx, first.teamId, apiToken.id))).toEqual(once)
  })

  it('does not find one of another team', async () => {
    const { apiToken } = await database.transaction((tx) =>
      createApiToken(tx, operator, { kind: 'team', name: 'a', scopes: { preset: 'full' } }),
    )
    const { team } = await newTeam()
    const foreign = database.transaction((tx) => revokeApiToken(tx, team.id, apiToken.id))
    await expect(foreign).rejects.toMatchObject({ reason: 'RESOURCE_NOT_FOUND' })
  })
})

describe('deleteApiToken', () => {
  it('forgets it', async () => {
    const { apiToken } = await database.transaction((tx) =>
      createApiToken(tx, operator, { kind: 'team', name: 'a', scopes: { preset: 'full' } }),
    )
    const input = { id: apiToken.id }
    await expect(
      database.transaction((tx) => deleteApiToken(tx, first.teamId, { ...input, version: 2 })),
    ).rejects.toMatchObject({
      reason: 'ETAG_MISMATCH',
    })
    await database.transaction((tx) => deleteApiToken(tx, first.teamId, { ...input, version: 1 }))
    await expect(database.transaction((tx) => deleteApiToken(tx, first.teamId, input))).rejects.toMatchObject({
      reason: 'RESOURCE_NOT_FOUND',
    })
  })
})
