import { HourlyActivitySchema } from '../../../../gen/patchbay/v1/overview_pb.ts'
import { OverviewService } from '../../../../gen/patchbay/v1/overview_service_pb.ts'
import {
  type CallHourRecord,
  DURATION_BOUNDS_MS,
  type FigureKind,
  type FigureRecord,
  listActivity,
  readFigures,
} from '../../../platform/figures/index.ts'
import { environmentIdOf } from '../caller.ts'
import { defineService, type ServiceDefinition } from '../operation.ts'
import type { ServiceDeps } from './deps.ts'
import { shapeOf } from './shape.ts'
import { checkRange } from './time-range.ts'
import { dateFrom } from './values.convert.ts'

const activityToProto = shapeOf(HourlyActivitySchema).from<CallHourRecord>()

/** Reads the figures of an environment. */
export function overviewService({ database, callLog }: Pick<ServiceDeps, 'database' | 'callLog'>): ServiceDefinition {
  return defineService(
    OverviewService,
    {
      getOverview: async (_, context) => overviewToProto(await readFigures(database.pool, environmentIdOf(context))),
      getActivity: async ({ environmentIntegrationId, since, until, ...page }, context) => {
        const filter = { environmentIntegrationId, since: dateFrom(since), until: dateFrom(until) }
        await callLog.flush()
        const { items, nextPageToken } = await listActivity(database.pool, environmentIdOf(context), filter, page)
        return { activity: items.map(activityToProto), nextPageToken, durationBoundsMs: [...DURATION_BOUNDS_MS] }
      },
    },
    { getActivity: checkRange },
  )
}

function overviewToProto(figures: readonly FigureRecord[]) {
  const ofKind = (wanted: FigureKind) =>
    figures.filter(({ kind }) => kind === wanted).map(({ state, count }) => ({ state, count }))
  return {
    accounts: ofKind('account'),
    triggers: ofKind('trigger'),
    runs: ofKind('run'),
    deliveries: ofKind('delivery'),
    inboundEvents: ofKind('inbound_event'),
  }
}
