import { TaskSchema } from '../../../../gen/patchbay/v1/task_pb.ts'
import { TaskService } from '../../../../gen/patchbay/v1/task_service_pb.ts'
import { cancelTask, getTask, listTasks, TASK_STATES, type TaskRecord } from '../../../foundation/queue/index.ts'
import { environmentIdOf } from '../caller.ts'
import { defineService, type ServiceDefinition } from '../operation.ts'
import type { ServiceDeps } from './deps.ts'
import { listRpc } from './list-rpc.ts'
import { shapeOf } from './shape.ts'
import { parseEnum } from './values.convert.ts'

/** Shows and cancels background tasks. */
export function taskService({ database }: Pick<ServiceDeps, 'database'>): ServiceDefinition {
  return defineService(TaskService, {
    getTask: async ({ id }, context) => taskToProto(await getTask(database.pool, environmentIdOf(context), id)),
    listTasks: listRpc(TaskService.method.listTasks, taskToProto, (request, context) =>
      listTasks(database.pool, environmentIdOf(context), parseEnum(TASK_STATES, request.state), request),
    ),
    cancelTask: async ({ id }, context) => taskToProto(await cancelTask(database.pool, environmentIdOf(context), id)),
  })
}

/** A task as the contract shows it. */
export const taskToProto = shapeOf(TaskSchema).from<TaskRecord>({
  doneCount: ({ done }) => done,
  totalCount: ({ total }) => total,
})
