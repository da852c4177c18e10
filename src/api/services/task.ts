import type { MessageInitShape } from '@bufbuild/protobuf'
import type { TaskSchema } from '../../../gen/patchbay/v1/task_pb.ts'
import { TaskService } from '../../../gen/patchbay/v1/task_service_pb.ts'
import { cancelTask, getTask, listTasks, TASK_STATES, type TaskRecord } from '../../tasks/index.ts'
import { environmentIdOf } from '../caller.ts'
import { structFrom } from '../messages/struct.ts'
import { defineService, type ServiceDefinition } from '../operation.ts'
import type { ServiceDeps } from './deps.ts'
import { parseEnum, timestampFrom } from './values.convert.ts'

/** Shows and cancels background tasks. */
export function taskService({ database }: Pick<ServiceDeps, 'database'>): ServiceDefinition {
  return defineService(TaskService, {
    getTask: async ({ id }, context) => taskToProto(await getTask(database.pool, environmentIdOf(context), id)),
    listTasks: async (request, context) => {
      const state = parseEnum(TASK_STATES, request.state)
      const page = await listTasks(database.pool, environmentIdOf(context), state, request)
      return { tasks: page.items.map(taskToProto), nextPageToken: page.nextPageToken }
    },
    cancelTask: async ({ id }, context) => taskToProto(await cancelTask(database.pool, environmentIdOf(context), id)),
  })
}

/** A task as the contract shows it. */
export function taskToProto(task: TaskRecord): MessageInitShape<typeof TaskSchema> {
  return {
    id: task.id,
    environmentId: task.environmentId,
    kind: task.kind,
    state: task.state,
    params: structFrom(task.params),
    doneCount: task.done,
    totalCount: task.total ?? undefined,
    result: structFrom(task.result),
    error: task.error ?? undefined,
    createdAt: timestampFrom(task.createdAt),
    updatedAt: timestampFrom(task.updatedAt),
    startedAt: timestampFrom(task.startedAt),
    finishedAt: timestampFrom(task.finishedAt),
  }
}
