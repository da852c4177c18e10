import { parseEtag } from '../../storage/index.ts'

/** The version a request insists on; absent when it sends no etag and takes whatever is stored. */
export function versionFrom(etag: string | undefined): number | undefined {
  return etag === undefined ? undefined : parseEtag(etag)
}
