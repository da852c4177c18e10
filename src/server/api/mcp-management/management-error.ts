import type { Failure } from '../../../foundation/base/index.ts'
import { errorOfFailure, type ToolError } from '../../../tools/servers/index.ts'
import { restStatus } from '../pipeline/errors.ts'

/** The error of a tool for the failure of an operation: with its reason, the status that REST answers, and a type that fits it. */
export function managementError(failure: Failure): ToolError {
  const status = restStatus(failure)
  const error = errorOfFailure(failure)
  return {
    ...error,
    reason: failure.reason,
    status,
    type: error.type === 'internal' ? typeOfStatus(status) : error.type,
  }
}

function typeOfStatus(status: number): ToolError['type'] {
  if (status === 401 || status === 403) return 'forbidden'
  if (status === 429) return 'rate_limited'
  if (status === 504) return 'timeout'
  return status < 500 ? 'validation' : 'internal'
}
