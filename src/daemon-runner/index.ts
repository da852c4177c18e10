/**
 * The daemon that ships with the product: a process of the customer that claims runs of a group, reads their pages through
 * the service and keeps the records in a store of the customer's.
 *
 * Lives here: the client of the service, what is held and for how long, the stores. It knows the service only as its
 * contract, so anybody may write another daemon, and the sync engine. Never here: credentials, definitions, the product's
 * database.
 */

export { createDaemon, type DaemonOptions } from './daemon.ts'
export { openStore } from './open-store.ts'
export { connectService } from './service.ts'
export type { Store } from './store.ts'
