export { createDataDirectory, DataDirectoryLock } from './data-directory.ts'
export { type EmbeddedServer, startEmbeddedServer } from './server.ts'
