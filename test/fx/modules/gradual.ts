// Models and helpers of the tests of gradual types.
import type { GraphModule, Node, NodeType, TargetFunction } from 'tensorfx/fx'
import { symbolicTrace, tuple } from 'tensorfx/fx'
import { Dyn, TensorType, setInputTypes, tensorTypes } from 'tensorfx/fx/experimental'
import type { Dimension } from 'tensorfx/fx/experimental'
import { AdaptiveAvgPool2d, BatchNorm2d, Conv2d, Linear, MaxPool2d, Module, ReLU, Sequential } from 'tensorfx/nn'
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'

/** A type that prints as a tuple, which the goldens use. */
export const TT = (...dims: readonly Dimension[]): TensorType => TensorType(tuple(...dims))

/** The types of a graph's nodes as text. */
export const typesOf = (gm: GraphModule): Record<string, string> =>
  Object.fromEntries([...gm.graph.nodes].map((node) => [node.name, node.type === null ? 'None' : String(node.type)]))

/** A graph whose inputs, and other nodes, have types. */
export function typed(model: Module | TargetFunction, ...types: readonly (NodeType | null)[]): GraphModule {
  const gm = traced(model)
  const inputs = gm.graph.findNodes({ op: 'placeholder' })
  setInputTypes(gm, Object.fromEntries(types.map((type, i) => [inputs[i]?.target ?? '', type])))
  return gm
}

export const traced = (model: Module | TargetFunction): GraphModule => symbolicTrace(model as Module)

/** Sets the types of nodes by their names. */
export function annotateNodes(gm: GraphModule, types: Readonly<Record<string, NodeType>>): GraphModule {
  for (const node of gm.graph.nodes) node.type = types[node.name] ?? node.type
  return gm
}

export const outputOf = (gm: GraphModule): Node => gm.graph.outputNode()

export const conv3x3 = (inputs: number, outputs: number, stride = 1): Conv2d => new Conv2d(inputs, outputs, 3, { stride, padding: 1, bias: false })

/** A module that calls its layers in order. */
export class Chained extends Module {
  [layer: string]: unknown

  constructor(layers: Readonly<Record<string, Module>>) {
    super()
    Object.assign(this, layers)
    Object.defineProperty(this, 'names', { value: Object.keys(layers) })
  }

  override forward(x: Tensor): Tensor {
    return (this['names'] as string[]).reduce((value, name) => (this[name] as ReLU).call(value), x)
  }
}

/** conv, pool, conv, pool, linear, adaptive pool, flatten. */
export class ConvPoolFlatten extends Module {
  conv1: Conv2d = new Conv2d(3, 6, 5)
  pool: MaxPool2d = new MaxPool2d(2, 2)
  conv2: Conv2d = new Conv2d(6, 16, 5)
  fc1: Linear = new Linear(5, 120)
  pool2: AdaptiveAvgPool2d = new AdaptiveAvgPool2d([6, 7])

  override forward(x: Tensor): Tensor {
    const pooled = this.pool.call(this.conv2.call(this.pool.call(this.conv1.call(x))))
    return torch.flatten(this.pool2.call(this.fc1.call(pooled)), 1)
  }
}

class Bottleneck extends Module {
  conv1: Conv2d
  bn1: BatchNorm2d
  conv2: Conv2d
  bn2: BatchNorm2d
  conv3: Conv2d
  bn3: BatchNorm2d
  relu: ReLU = new ReLU()
  downsample: Sequential | null

  constructor(inputs: number, planes: number, stride: number) {
    super()
    this.conv1 = new Conv2d(inputs, planes, 1, { bias: false })
    this.bn1 = new BatchNorm2d(planes)
    this.conv2 = conv3x3(planes, planes, stride)
    this.bn2 = new BatchNorm2d(planes)
    this.conv3 = new Conv2d(planes, planes * 4, 1, { bias: false })
    this.bn3 = new BatchNorm2d(planes * 4)
    this.downsample =
      stride !== 1 || inputs !== planes * 4
        ? new Sequential(new Conv2d(inputs, planes * 4, 1, { stride, bias: false }), new BatchNorm2d(planes * 4))
        : null
  }

  override forward(x: Tensor): Tensor {
    const first = this.relu.call(this.bn1.call(this.conv1.call(x)))
    const second = this.relu.call(this.bn2.call(this.conv2.call(first)))
    const third = this.bn3.call(this.conv3.call(second))
    const identity = this.downsample === null ? x : (this.downsample.call(x) as Tensor)
    return this.relu.call(torch.add(third, identity))
  }
}

/** torchvision's resnet50, with a fraction of its channels: the shapes of 16 blocks in four stages. */
export class ResNet50 extends Module {
  conv1: Conv2d
  bn1: BatchNorm2d
  relu: ReLU = new ReLU()
  maxpool: MaxPool2d = new MaxPool2d(3, { stride: 2, padding: 1 })
  layer1: Sequential
  layer2: Sequential
  layer3: Sequential
  layer4: Sequential
  avgpool: AdaptiveAvgPool2d = new AdaptiveAvgPool2d([1, 1])
  fc: Linear

  constructor(width = 64, classes = 1000) {
    super()
    this.conv1 = new Conv2d(3, width, 7, { stride: 2, padding: 3, bias: false })
    this.bn1 = new BatchNorm2d(width)
    let inputs = width
    const stage = (planes: number, blocks: number, stride: number): Sequential => {
      const layers = Array.from({ length: blocks }, (_, i) => {
        const block = new Bottleneck(inputs, planes, i === 0 ? stride : 1)
        inputs = planes * 4
        return block
      })
      return new Sequential(...layers)
    }
    this.layer1 = stage(width, 3, 1)
    this.layer2 = stage(width * 2, 4, 2)
    this.layer3 = stage(width * 4, 6, 2)
    this.layer4 = stage(width * 8, 3, 2)
    this.fc = new Linear(width * 32, classes)
  }

  override forward(x: Tensor): Tensor {
    const stem = this.maxpool.call(this.relu.call(this.bn1.call(this.conv1.call(x))))
    const stages = [this.layer1, this.layer2, this.layer3, this.layer4].reduce((value, layer) => layer.call(value) as Tensor, stem)
    return this.fc.call(torch.flatten(this.avgpool.call(stages), 1))
  }
}

export { Dyn, tensorTypes }
