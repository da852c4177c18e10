/** Names an object: two path segments of letters, digits and hyphens. */
export interface ObjectName {
  readonly environmentId: string
  readonly id: string
}

/** Holds immutable objects outside the database: a directory, or a bucket of an S3-compatible service. */
export interface ObjectStore {
  /** Stores an object; repeated with the same bytes it changes nothing. @throws Failure OBJECT_STORE_UNAVAILABLE */
  put(name: ObjectName, bytes: Uint8Array): Promise<void>
  /** The bytes; `undefined` when the store says that there is no such object. @throws Failure OBJECT_STORE_UNAVAILABLE */
  get(name: ObjectName): Promise<Uint8Array | undefined>
  /** Deletes an object; a missing one counts as deleted. @throws Failure OBJECT_STORE_UNAVAILABLE */
  delete(name: ObjectName): Promise<void>
}

/** The path of an object below the directory or prefix of the store. */
export function objectPath({ environmentId, id }: ObjectName): string {
  return `${environmentId}/${id}`.toLowerCase()
}
