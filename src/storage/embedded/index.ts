export { DataDirectoryLock, makeDataDirectory } from './data-directory.ts'
export { type EmbeddedOptions, type EmbeddedServer, startEmbedded } from './server.ts'
