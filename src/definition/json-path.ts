import { type DotPath, formatDotPath } from '../base/index.ts'

/** A path as findings write it: `override.resources.issues.list.path`, `fields[2].name`, `headers["x.y"]`. */
export function writePath(prefix: string, path: DotPath): string {
  return formatDotPath(path, prefix)
}
