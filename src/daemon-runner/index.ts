/**
 * The shipped daemon: a process of the customer that claims runs of a group, reads their pages through the service and writes
 * the records to a store of the customer.
 *
 * Here: leases, source and sink over the public contract of the service, and the stores; executor and sync engine are shared
 * with the worker. Never here: credentials, definitions, the product's database.
 */

export { createDaemon, type DaemonOptions } from './daemon.ts'
export { openStore } from './open-store.ts'
export { connectService } from './service.ts'
export type { Store } from './store.ts'
export { StoreError } from './store-problem.ts'
