import type { DotPath } from '../base/index.ts'
import type { JsonTemplate } from '../expression/index.ts'
import type { MethodPlan } from './plan.ts'

/** A named action, ready to run. */
export interface ActionPlan {
  readonly name: string
  readonly steps: readonly StepPlan[]
  /** One of its requests may change something upstream: it is neither GET, HEAD nor OPTIONS. */
  readonly isWrite: boolean
  /** What its templates read of parent records: paths below the root `resources`. */
  readonly parentPaths: readonly DotPath[]
}

export type StepPlan = RequestStepPlan | TransformStepPlan | UpdateContextStepPlan | FormStepPlan

interface AnyStepPlan {
  /** `$steps.<name>`; unique in the action. */
  readonly name: string
  /** JSONata; absent: the step always runs. */
  readonly runIf: string | undefined
}

/** Sends one request. What the caller gave reaches it only where its templates read it. */
interface RequestStepPlan extends AnyStepPlan {
  readonly type: 'request'
  readonly request: MethodPlan
}

interface TransformStepPlan extends AnyStepPlan {
  readonly type: 'transform'
  readonly expression: string
}

interface UpdateContextStepPlan extends AnyStepPlan {
  readonly type: 'update_context'
  readonly patch: ContextSource
}

/** Asks a person; nothing that runs without one can act on it. */
interface FormStepPlan extends AnyStepPlan {
  readonly type: 'form'
}

/** Where the keys of an `update_context` come from. */
export type ContextSource =
  | { readonly kind: 'previous' }
  | { readonly kind: 'expression'; readonly text: string }
  | { readonly kind: 'template'; readonly template: JsonTemplate }
