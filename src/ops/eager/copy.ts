// Copies elements between tensors of one shape, any layouts and dtypes.
import { devices } from '../../dispatch/index.ts'
import { copyBytes, dtypeInfo, isComplexDType } from '../../kernels/index.ts'
import type { Expr } from '../../kernels/index.ts'
import { parseSchema } from '../../protocol/index.ts'
import { pairsOf } from '../../tensor/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import { addressesOf, launchSpilled } from './launch.ts'
import { launches } from './launchLog.ts'
import { collapseLayout } from './layout.ts'
import { launchPointwise } from './pointwise.ts'
import type { PointwiseOp } from './pointwiseTypes.ts'

/** The identity as a pointwise operator. It is only launched, never dispatched. */
const identity: PointwiseOp = {
  id: -1,
  name: 'copy',
  qualname: 'torch.clone',
  schema: parseSchema('copy(Tensor self) -> Tensor'),
  pointwise: { promotion: 'promote', compute: (x: Expr) => x },
}

/** Rows of at least this many bytes are moved by the host, in 0.6 to 1.0 of the time of a kernel (rows of 8 to 128 KB); for shorter ones its call takes longer than the copy. */
const ROW_BYTES = 2048

/** Rows of bytes, whose starts are `targetStep` and `sourceStep` bytes apart. */
function copyRows(...[target = 0, source = 0, rows = 0, bytes = 0, targetStep = 0, sourceStep = 0]: number[]): void {
  for (let row = 0; row < rows; row++) copyBytes(target + row * targetStep, source + row * sourceStep, bytes)
}

/** The numbers that {@link copyRows} takes after the addresses; null where elements do not lie in rows that are long enough. */
function rowsOf(source: Tensor, target: Tensor): readonly number[] | null {
  const { size } = dtypeInfo[target.dtype]
  if (source.dtype !== target.dtype || target.numel * size < ROW_BYTES) return null
  const { dims, strides } = collapseLayout(target.sizes, [target.steps, source.steps])
  const [rows, elements] = dims.length === 1 ? [1, dims[0] ?? 0] : dims
  if (dims.length > 2 || elements === undefined || elements * size < ROW_BYTES || !strides.every((own) => own.at(-1) === 1)) return null
  return [rows ?? 1, elements * size, ...strides.map((own) => (own[0] ?? 0) * size)]
}

/** Writes the elements of `source` (cast) into `target`, which has the same shape. Both are complex, or neither. */
export function copyInto(source: Tensor, target: Tensor): void {
  if (devices.operators !== null && target.device !== 'cpu') return devices.operators.copy(source, target)
  const rows = rowsOf(source, target)
  if (rows !== null) moveRows(source, target, rows)
  else if (isComplexDType(target.dtype)) launchPointwise(identity, [pairsOf(source)], pairsOf(target))
  else launchPointwise(identity, [source], target)
  target.storage?.noteWrite()
}

function moveRows(source: Tensor, target: Tensor, rows: readonly number[]): void {
  const tensors = [target, source]
  const addresses = addressesOf(tensors)
  if (addresses === null) launchSpilled(copyRows, tensors, [true, false], rows)
  else {
    launches.listener?.launched(copyRows, tensors, rows)
    copyRows(...addresses, ...rows)
  }
}
