import { newId } from '../../foundation/base/index.ts'
import type { Database, Tx } from '../../foundation/database/index.ts'
import { recordApiTokenEvent } from './api-token-events.ts'
import { storedScopes } from './scopes.ts'
import { insertApiToken, type NewApiToken } from './sql/api-tokens.ts'
import { insertEnvironment } from './sql/environments.ts'
import { findOperatorTeam, insertOperatorTeam } from './sql/teams.ts'
import { chosenToken, type MintedToken, mintToken } from './token-format.ts'

const TEAM_NAME = 'operator'
const ENVIRONMENT_NAME = 'default'
const TOKEN_NAME = 'bootstrap'

/** What a first start created; the only time its tokens are shown. */
export interface FirstStart {
  readonly teamId: string
  readonly environmentId: string
  readonly teamToken: string
  readonly environmentToken: string
}

/** Settings of a first start. */
export interface BootstrapOptions {
  /** The team token, instead of a random one: 32 to 256 visible ASCII characters. */
  readonly teamToken?: string | undefined
  /**
   * Stores the tokens before they are committed: a process that dies in between creates everything anew at the next start,
   * and no start commits tokens that are lost. May be called again with other values when the transaction is repeated.
   */
  readonly persist?: ((created: FirstStart) => Promise<void>) | undefined
}

/**
 * Creates the operator's team, its environment `default`, a team token and an environment token, unless there is an
 * operator's team: then it changes nothing.
 *
 * Any number of processes may start at once: one creates them, the others wait for it.
 *
 * @returns what this call created, `undefined` when there was an operator's team
 * @throws Error when the chosen team token has the wrong form
 */
export async function bootstrap(
  database: Database,
  { teamToken, persist }: BootstrapOptions = {},
): Promise<FirstStart | undefined> {
  const forTeam = teamToken === undefined ? mintToken('team') : chosenToken(teamToken)
  if (forTeam === undefined) throw new Error('a chosen team token takes 32 to 256 visible ASCII characters')
  if ((await findOperatorTeam(database.pool)) !== undefined) return undefined
  return await database.transaction(async (tx) => {
    const created = await createFirstTeam(tx, forTeam)
    if (created !== undefined) await persist?.(created)
    return created
  })
}

async function createFirstTeam(tx: Tx, forTeam: MintedToken): Promise<FirstStart | undefined> {
  const teamId = newId()
  if (!(await insertOperatorTeam(tx, teamId, TEAM_NAME))) return undefined
  const environmentId = newId()
  await insertEnvironment(tx, environmentId, teamId, ENVIRONMENT_NAME)
  const forEnvironment = mintToken('environment')
  await insertBootstrapToken(tx, forTeam, { kind: 'team', teamId, environmentId: undefined })
  await insertBootstrapToken(tx, forEnvironment, { kind: 'environment', teamId, environmentId })
  return { teamId, environmentId, teamToken: forTeam.token, environmentToken: forEnvironment.token }
}

async function insertBootstrapToken(
  tx: Tx,
  { hash, hint }: MintedToken,
  subject: Pick<NewApiToken, 'kind' | 'teamId' | 'environmentId'>,
): Promise<void> {
  const scopes = storedScopes({ preset: 'full' })
  const input = {
    id: newId(),
    ...subject,
    name: TOKEN_NAME,
    hash,
    hint,
    scopes,
    limits: undefined,
    expiresAt: undefined,
  }
  await recordApiTokenEvent(tx, 'api_token:created', await insertApiToken(tx, input))
}
