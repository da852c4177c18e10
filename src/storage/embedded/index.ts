export { DataDirectoryLock, makeDataDirectory } from './data-directory.ts'
export { type EmbeddedServer, startEmbedded } from './server.ts'
