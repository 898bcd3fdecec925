// What reads the environment variables, by name: each throws an error of tensorfx for a value that it refuses. Variables that take any text are not here.
import { debugLevelOf } from '../../distributed/debugLevel.ts'
import { pretendedNodes } from '../../distributed/mpi/sharedWindow.ts'
import { configVariables, readVariable } from '../../config.ts'
import { ArgumentError } from '../../errors/index.ts'
import { artifactsOf } from '../../events/logs.ts'
import { relaxedSettingOf } from '../../kernels/index.ts'

/** A variable that '1' switches on, while any other text does nothing. */
const readSwitch =
  (name: string) =>
  (text: string): void => {
    if (!['1', '0', ''].includes(text)) throw new ArgumentError(`${name} must be 1 (on) or 0 (off), got '${text}', which counts as off.`)
  }

const ofConfig = [...configVariables()].map(([name, key]) => [name, (text: string): unknown => readVariable(key, text)] as const)
const ofSwitches = ['TENSORFX_VERIFY', 'TENSORFX_FX_GRAPH_SHOW_STRIDE', 'TENSORFX_FX_GRAPH_SHOW_DEVICE'].map(
  (name) => [name, readSwitch(name)] as const,
)

export const READERS: ReadonlyMap<string, (text: string) => unknown> = new Map<string, (text: string) => unknown>([
  ...ofConfig,
  ...ofSwitches,
  ['TENSORFX_LOGS', artifactsOf],
  ['TENSORFX_RELAXED', relaxedSettingOf],
  ['TENSORFX_DISTRIBUTED_DEBUG', debugLevelOf],
  [
    'TENSORFX_MPI_NODES',
    (text): void => {
      if (pretendedNodes(text) === null)
        throw new ArgumentError(`TENSORFX_MPI_NODES must be a whole number of at least 1, got '${text}', which is ignored.`)
    },
  ],
])
