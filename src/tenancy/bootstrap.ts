import { newId } from '../base/index.ts'
import type { Database, Tx } from '../database/index.ts'
import { findOperatorTeam, insertApiToken, insertEnvironment, insertOperatorTeam } from './sql.ts'
import { chosenToken, type MintedToken, mintToken } from './token-format.ts'

const TEAM_NAME = 'operator'
const ENVIRONMENT_NAME = 'default'
const TOKEN_NAME = 'bootstrap'

/** What a first start made; the only moment at which the tokens can be read. */
export interface FirstStart {
  readonly teamId: string
  readonly environmentId: string
  readonly teamToken: string
  readonly environmentToken: string
}

/** How a first start goes. */
export interface BootstrapOptions {
  /** The team token to be, instead of a random one: 32 to 256 visible ASCII characters. */
  readonly teamToken?: string | undefined
  /**
   * Keeps what was made, before it is committed: a process that dies in between makes everything anew at the next start,
   * and no start commits tokens that nobody has. May be called again with other values.
   */
  readonly persist?: ((made: FirstStart) => Promise<void>) | undefined
}

/**
 * Makes the operator's team, its environment `default`, a team token and an environment token, unless there is an
 * operator's team; then it changes nothing, whatever the options say.
 *
 * Any number of processes may start at once: one makes, the others wait for it.
 *
 * @returns what this call made, `undefined` when it found everything there
 * @throws Error when the chosen team token cannot be one
 */
export async function bootstrap(
  database: Database,
  { teamToken, persist: keep }: BootstrapOptions = {},
): Promise<FirstStart | undefined> {
  const forTeam = teamToken === undefined ? mintToken('team') : chosenToken(teamToken)
  if (forTeam === undefined) throw new Error('a chosen team token takes 32 to 256 visible ASCII characters')
  if ((await findOperatorTeam(database.pool)) !== undefined) return undefined
  return await database.transaction(async (tx) => {
    const made = await createFirstTeam(tx, forTeam)
    if (made !== undefined) await keep?.(made)
    return made
  })
}

async function createFirstTeam(tx: Tx, forTeam: MintedToken): Promise<FirstStart | undefined> {
  const teamId = newId()
  if (!(await insertOperatorTeam(tx, teamId, TEAM_NAME))) return undefined
  const environmentId = newId()
  await insertEnvironment(tx, environmentId, teamId, ENVIRONMENT_NAME)
  const forEnvironment = mintToken('environment')
  const common = { teamId, name: TOKEN_NAME, expiresAt: undefined }
  await insertApiToken(tx, { ...common, ...storedPart(forTeam), id: newId(), kind: 'team', environmentId: undefined })
  await insertApiToken(tx, {
    ...common,
    ...storedPart(forEnvironment),
    id: newId(),
    kind: 'environment',
    environmentId,
  })
  return { teamId, environmentId, teamToken: forTeam.token, environmentToken: forEnvironment.token }
}

function storedPart({ hash, hint }: MintedToken): Pick<MintedToken, 'hash' | 'hint'> {
  return { hash, hint }
}
