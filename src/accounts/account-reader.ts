import { type AccountRef, type AccountWithSecrets, type Database, findAccountsWithSecrets } from '../storage/index.ts'

/** Reads accounts as they are at the moment of asking. */
export interface AccountReader {
  /** `undefined`: there is none. Ids in any case. */
  read(wanted: AccountRef): Promise<AccountWithSecrets | undefined>
}

/** Statements under way at most; whoever comes meanwhile shares the next one. */
const CONCURRENT_READS_MAX = 2
/** Accounts per statement. */
const READ_BATCH_MAX = 100

interface PendingRead {
  readonly wanted: AccountRef
  readonly resolve: (found: AccountWithSecrets | undefined) => void
  readonly reject: (error: unknown) => void
}

/**
 * Reads at once while there is little to do, and together when there is much: under load a statement answers many calls, and
 * none of them with anything older than its question.
 */
export function createAccountReader(database: Pick<Database, 'pool'>): AccountReader {
  const queue: PendingRead[] = []
  let underWay = 0

  async function readOn(): Promise<void> {
    underWay += 1
    while (queue.length > 0) await readTogether(queue.splice(0, READ_BATCH_MAX))
    underWay -= 1
  }

  async function readTogether(batch: readonly PendingRead[]): Promise<void> {
    try {
      const refs = new Map(batch.map(({ wanted }) => [accountKeyOf(wanted), wanted]))
      const found = await findAccountsWithSecrets(database.pool, [...refs.values()])
      const byKey = new Map(found.map((each) => [accountKeyOf(each.account), each]))
      for (const { wanted, resolve } of batch) resolve(byKey.get(accountKeyOf(wanted)))
    } catch (error) {
      for (const { reject } of batch) reject(error)
    }
  }

  return {
    read: (wanted) =>
      new Promise((resolve, reject) => {
        queue.push({ wanted, resolve, reject })
        if (underWay < CONCURRENT_READS_MAX) void readOn()
      }),
  }
}

function accountKeyOf({ environmentId, id }: AccountRef): string {
  return `${environmentId}|${id}`.toLowerCase()
}
