/**
 * Background tasks: work that a call starts and workers do in small steps, with progress and cancel.
 *
 * Lives here: the table, who runs which step, and how a failed step is repeated. Never here: what a task does, which is a
 * `TaskKind` of the module whose rows it changes.
 */

export { createTaskRunner, type TaskKind, type TaskStep, taskCleaner } from './run-tasks.ts'
export { cancelTasksOfEnvironments, deleteTasksOfEnvironment, TASK_STATES, type TaskRecord } from './sql.ts'
export { cancelTask, getTask, listTasks, startServiceTask, startTask } from './task.ts'
