import { createLogger } from '../../foundation/telemetry/index.ts'
import { findOperatorTeam, type Principal } from '../../platform/tenancy/index.ts'
import { readConfig } from '../../server/config/index.ts'
import { openStorage, type Storage } from '../../server/open.ts'
import { prepareFirstStart } from './first-start.ts'

/** The operator's team as the one that acts. */
type Operator = Pick<Principal, 'teamId' | 'isOperator' | 'scopes'>

/** Acts for the operator's team without a token, through the database: for a lost first token, or scripts on this machine. */
export async function asOperator(
  environment: NodeJS.ProcessEnv,
  applicationName: string,
  act: (storage: Storage, actor: Operator) => Promise<void>,
): Promise<number> {
  const config = readConfig(environment)
  const options = { applicationName, isStart: false, logger: createLogger(config.logLevel) }
  await using storage = await openStorage(config, options)
  await prepareFirstStart(config, storage)
  await act(storage, await getOperatorTeam(storage))
  return 0
}

async function getOperatorTeam({ database }: Storage): Promise<Operator> {
  const team = await findOperatorTeam(database.pool)
  if (team === undefined) throw new Error('the first team is missing right after it was made')
  return { teamId: team.id, isOperator: true, scopes: undefined }
}
