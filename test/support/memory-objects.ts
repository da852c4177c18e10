import type { ObjectStore } from '../../src/platform/objects/index.ts'

/** An object store in memory; a test may take objects away, or make it fail. */
export class MemoryObjects implements ObjectStore {
  readonly stored = new Map<string, Uint8Array>()
  /** Thrown by every request while it is set. */
  failure: Error | undefined
  reads = 0

  async put({ environmentId, id }: Parameters<ObjectStore['put']>[0], bytes: Uint8Array): Promise<void> {
    if (this.failure !== undefined) throw this.failure
    this.stored.set(`${environmentId}/${id}`, bytes)
  }

  async get({ environmentId, id }: Parameters<ObjectStore['get']>[0]): Promise<Uint8Array | undefined> {
    this.reads += 1
    if (this.failure !== undefined) throw this.failure
    return this.stored.get(`${environmentId}/${id}`)
  }

  async delete({ environmentId, id }: Parameters<ObjectStore['delete']>[0]): Promise<void> {
    if (this.failure !== undefined) throw this.failure
    this.stored.delete(`${environmentId}/${id}`)
  }
}
