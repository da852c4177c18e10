import type { Knex } from 'knex'
import * as core from './0001-core.ts'
import * as runs from './0002-runs.ts'
import * as accountToken from './0003-account-token.ts'
import * as budgets from './0004-budgets.ts'
import * as connecting from './0005-connecting.ts'
import * as daemons from './0006-daemons.ts'
import * as retention from './0008-retention.ts'
import * as worker from './0009-worker.ts'

/** Every migration, oldest first. Names are final once released; a new one is one file and one line here. */
export const MIGRATIONS: readonly { readonly name: string; readonly migration: Knex.Migration }[] = [
  { name: '0001-core', migration: core },
  { name: '0002-runs', migration: runs },
  { name: '0003-account-token', migration: accountToken },
  { name: '0004-budgets', migration: budgets },
  { name: '0005-connecting', migration: connecting },
  { name: '0006-daemons', migration: daemons },
  { name: '0008-retention', migration: retention },
  { name: '0009-worker', migration: worker },
]
