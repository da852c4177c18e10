/**
 * Figures: how many rows of each kind are in each state, and how many requests were sent to third parties in each hour. They are
 * kept by what changes them, so that a read costs the same however many rows there are.
 *
 * Here: the tables of figures, what folds, reads and deletes them. Never here: what a state means. The triggers that write
 * changes of states are in `foundation/database/migrations/0036-figures.sql`.
 */

export { DURATION_BOUNDS_MS } from './call-hours.ts'
export { type CallHourRecord, listActivity } from './read-activity.ts'
export {
  CALL_HOUR_DAYS,
  deleteCallHoursOfEnvironment,
  deleteFiguresOfDay,
  type FigureKind,
  type FigureRecord,
  foldFigures,
  readFigures,
} from './sql.ts'
