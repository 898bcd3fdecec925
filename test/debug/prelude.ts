// The models of the recorded cases in test/goldens/debug3: the sources that are Python there.
import { nn, torch } from 'tensorfx'
import type { DType, Tensor } from 'tensorfx'

interface DetOptions {
  readonly k?: number
  readonly grad?: boolean
  readonly dtype?: DType
}

/** Deterministic values: multiples of 1/8 from -0.75 to 0.75. */
export function det(shape: readonly number[], { k = 0, grad = false, dtype = 'float32' }: DetOptions = {}): Tensor {
  const numel = shape.reduce((a, b) => a * b, 1)
  const values = Array.from({ length: numel }, (_, i) => ((i * 5 + 2 * k) % 13) / 8 - 0.75)
  return torch
    .tensor(values, { dtype })
    .reshape([...shape])
    .detach()
    .requiresGrad_(grad)
}

/** Deterministic parameters: multiples of 1/8. */
export function fill<M extends nn.Module>(module: M): M {
  let k = 0
  for (const parameter of module.parameters()) {
    const tensor = parameter as Tensor
    const values = Array.from({ length: tensor.numel }, (_, i) => ((i * 7 + 3 * k) % 11) / 8 - 0.625)
    torch.noGrad(() => tensor.copy_(torch.tensor(values).reshape([...tensor.shape])))
    k++
  }
  return module
}

/** Identity whose gradient is times c. */
export const backwardTimes = (x: Tensor, c: number): Tensor => x.mul(c).add(x.detach().mul(1 - c))

export class MaskedLMOutput {
  readonly loss: unknown
  readonly logits: unknown
  constructor(loss: unknown, logits: unknown) {
    this.loss = loss
    this.logits = logits
  }
}

type Post = (y: Tensor) => unknown

/** forward(x) = post(lin2(relu(lin1(x)))), where post is the fault. */
export class Mlp extends nn.Module {
  readonly lin1 = new nn.Linear(3, 4)
  readonly lin2 = new nn.Linear(4, 2)
  readonly post: Post
  constructor(post: Post = (y) => y) {
    super()
    this.post = post
    fill(this)
  }
  forward(x: Tensor): unknown {
    return this.post(this.lin2(torch.relu(this.lin1(x))))
  }
}

export class Bn extends nn.Module {
  readonly lin = new nn.Linear(3, 4)
  readonly bn = new nn.BatchNorm1d(4)
  constructor() {
    super()
    fill(this)
  }
  forward(x: Tensor): Tensor {
    return this.bn(this.lin(x))
  }
}

/** One layer twice. */
export class Shared extends nn.Module {
  readonly a: nn.Linear
  readonly b: nn.Linear
  readonly post: Post
  constructor(size = 2, post: Post = (y) => y) {
    super()
    this.post = post
    this.a = fill(new nn.Linear(size, size))
    this.b = this.a
  }
  forward(x: Tensor): unknown {
    return this.post(this.b(this.a(x)))
  }
}

type Body = (m: Readonly<Record<string, Tensor>>, ...inputs: never[]) => unknown

/** A module from a function of its tensors and the inputs. */
export class G extends nn.Module {
  readonly body: Body
  constructor(body: Body, parameters: Readonly<Record<string, Tensor>> = {}, buffers: Readonly<Record<string, Tensor>> = {}) {
    super()
    this.body = body
    for (const [name, value] of Object.entries(parameters)) this.registerParameter(name, new nn.Parameter(value))
    for (const [name, value] of Object.entries(buffers)) this.registerBuffer(name, value)
  }
  forward(x: Tensor): unknown {
    return Reflect.apply(this.body, undefined, [this, x])
  }
}
