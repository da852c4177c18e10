/**
 * Context values outside of the database: the named context keys of an account as encrypted objects in a directory or in a
 * bucket of an S3-compatible service.
 *
 * Lives here: the stores, and the table that says which object an account's key is. Never here: what a context is for, or
 * which keys live here, which the account says.
 */

export { CONTEXT_OBJECT_BYTES_MAX, type ContextValueStore, createContextValueStore } from './context-values.ts'
export { createDirectoryStore } from './directory-store.ts'
export { contextObjectCleaner, contextObjectUploader } from './maintenance.ts'
export type { ObjectStore } from './object-store.ts'
export { createS3Store, type S3Bucket } from './s3-store.ts'
export { sealedContextObjects } from './sealed-objects.ts'
