// partitionByDevice: the regions of a graph that run on one device, each as one call. PyTorch's torch.fx.passes.backends.cudagraphs.
import { ArgumentError } from '../../../errors/index.ts'
import { checkArray, checkCount, checkOptions, isObject } from '../../../protocol/index.ts'
import { recordedValue } from '../../graph/nodeValue.ts'
import { targetText } from '../../graph/node.ts'
import type { Node } from '../../graph/node.ts'
import { operator } from '../../graph/operator.ts'
import type { GraphModule } from '../../run/graphModule.ts'
import type { OperatorSupportBase } from './operatorSupport.ts'
import { CapabilityBasedPartitioner } from './partitioner.ts'
import { isCall } from '../nodes/calls.ts'

/** Options of {@link DeviceSupport}. */
export interface DeviceSupportOptions {
  /**
   * The device that a node's value is on; null for a value on none, such as a number. By default it is the `device` of `meta.val` or `meta.fake_result` (of all values,
   * if there are several), and `'cpu'` if that has none.
   */
  readonly deviceOf?: (node: Node) => string | null
  /** Qualified names of functions that never count as supported. Default: the backward of embeddings. */
  readonly never?: readonly string[]
}

const DEFAULT_NEVER: readonly string[] = ['torch.ops.tensorfx.embedding_backward']

/** The device that FakeTensorProp or a backend recorded for a value; `'several'`, which no region has, if its parts are on different ones. @throws ArgumentError if nothing is recorded. */
function recordedDevice(node: Node): string | null {
  const value = recordedValue(node) ?? node.meta['fake_result']
  if (value === undefined)
    throw new ArgumentError(`the value of node '${node.name}' is not known; run FakeTensorProp of 'tensorfx/aot' on the graph, or pass deviceOf.`)
  const devices = new Set((Array.isArray(value) ? value : [value]).map(deviceOfValue))
  const [device = null] = devices
  return devices.size > 1 ? 'several' : device
}

function deviceOfValue(value: unknown): string | null {
  if (!isObject(value)) return null
  return 'device' in value && typeof value.device === 'string' ? value.device : 'cpu'
}

/**
 * Supports calls whose inputs and value are all on one device. Taking an element of a tuple is always supported. PyTorch's CudaGraphsSupport, whose device is CUDA.
 */
export class DeviceSupport implements OperatorSupportBase {
  readonly #device: string
  readonly #deviceOf: (node: Node) => string | null
  readonly #never: ReadonlySet<string>

  constructor(device: string, options: DeviceSupportOptions = {}) {
    checkCount('DeviceSupport', arguments, 2)
    checkOptions('DeviceSupport', options, { deviceOf: true, never: true })
    this.#device = device
    this.#deviceOf = options.deviceOf ?? recordedDevice
    if (options.never !== undefined) checkArray('DeviceSupport', 'options.never', options.never)
    this.#never = new Set(options.never ?? DEFAULT_NEVER)
  }

  /** See {@link OperatorSupportBase}. @throws ArgumentError if the device of a value is not known. */
  isNodeSupported(_gm: GraphModule, node: Node): boolean {
    if (!isCall(node) || this.#never.has(targetText(node.target))) return false
    if (node.target === operator.getitem) return true
    return [...node.allInputNodes, node].every((n) => this.#deviceOf(n) === this.#device)
  }
}

/**
 * Makes each region of a graph that runs on `device` one call of a submodule: `fused_0`, `fused_1`, … A backend can then run it as a whole. Changes the module and
 * returns it. FakeTensorProp must have run, unless `deviceOf` tells where values are. PyTorch's partition_cudagraphs.
 *
 *     new FakeTensorProp(gm).propagate(x)
 *     partitionByDevice(gm, 'webgpu')
 */
export const partitionByDevice = (gm: GraphModule, device: string, options: DeviceSupportOptions = {}): GraphModule =>
  new CapabilityBasedPartitioner(gm, new DeviceSupport(device, options), { allowsSingleNodePartition: true }).partitionAndFuse()
