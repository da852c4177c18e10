import type { DotPath } from '../base/index.ts'

const PLAIN_KEY = /^[^.[\]"\s]+$/

/** A path as findings write it: `override.resources.issues.list.path`, `fields[2].name`, `headers["x.y"]`. */
export function writePath(prefix: string, path: DotPath): string {
  return path.reduce<string>((text, step) => {
    if (typeof step === 'number') return `${text}[${step}]`
    if (!PLAIN_KEY.test(step)) return `${text}[${JSON.stringify(step)}]`
    return text === '' ? step : `${text}.${step}`
  }, prefix)
}
