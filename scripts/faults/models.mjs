// The programs that faults are planted in: models with parameters, and functions of many operators. Nothing is imported, so that a program can take a copy of this file along.

/** Models by name. Each returns what it computes from batch i, and its loss. */
export const MODELS = {
  mlp({ nn, torch }) {
    const model = new nn.Sequential(new nn.Linear(5, 8), new nn.ReLU(), new nn.Linear(8, 6), new nn.Tanh(), new nn.Linear(6, 3), new nn.Softplus())
    return { model, batch: () => torch.randn([4, 5]), loss: (out) => out.square().mean() }
  },

  cnn({ nn, torch }) {
    const model = new nn.Sequential(
      new nn.Conv2d(2, 3, 3, { padding: 1 }),
      new nn.ReLU(),
      new nn.MaxPool2d(2),
      new nn.Conv2d(3, 4, 3),
      new nn.SiLU(),
      new nn.Flatten(),
      new nn.Linear(16, 5),
      new nn.LogSoftmax(-1),
    )
    const target = torch.tensor([1, 4, 0], { dtype: 'int64' })
    return { model, batch: () => torch.randn([3, 2, 8, 8]), loss: (out) => nn.functional.nllLoss(out, target) }
  },

  resnet({ nn, torch }) {
    class Block extends nn.Module {
      constructor() {
        super()
        this.conv1 = new nn.Conv2d(2, 4, 3, { padding: 1, bias: false })
        this.bn1 = new nn.BatchNorm2d(4)
        this.conv2 = new nn.Conv2d(4, 4, 3, { padding: 1, bias: false })
        this.bn2 = new nn.BatchNorm2d(4)
        this.down = new nn.Conv2d(2, 4, 1)
        this.fc = new nn.Linear(4, 3)
      }

      forward(x) {
        const out = this.bn2(this.conv2(torch.relu(this.bn1(this.conv1(x)))))
        const joined = torch.relu(out.add(this.down(x)))
        return this.fc(nn.functional.adaptiveAvgPool2d(joined, 1).flatten(1))
      }
    }
    const target = torch.tensor([0, 2, 1], { dtype: 'int64' })
    return { model: new Block(), batch: () => torch.randn([3, 2, 5, 5]), loss: (out) => nn.functional.crossEntropy(out, target) }
  },

  unet({ nn, torch }) {
    class UNet extends nn.Module {
      constructor() {
        super()
        this.first = new nn.Sequential(new nn.Conv2d(1, 4, 3, { padding: 1 }), new nn.GroupNorm(2, 4), new nn.SiLU())
        this.down = new nn.Conv2d(4, 4, 3, { padding: 1, stride: 2 })
        this.join = new nn.Conv2d(8, 2, 3, { padding: 1 })
        this.last = new nn.Conv2d(2, 1, 1)
      }

      forward(x) {
        const a = this.first(x)
        const b = torch.sigmoid(this.down(a))
        const up = nn.functional.interpolate(b, { scaleFactor: 2, mode: 'bilinear' })
        return x.sub(this.last(nn.functional.leakyRelu(this.join(torch.cat([up, a], 1)))))
      }
    }
    return { model: new UNet(), batch: () => torch.randn([2, 1, 6, 6]), loss: (out) => nn.functional.mseLoss(out, torch.zeros(out.shape)) }
  },

  lstm({ nn, torch }) {
    class Reader extends nn.Module {
      constructor() {
        super()
        this.lstm = new nn.LSTM(3, 4, { batchFirst: true })
        this.out = new nn.Linear(4, 2)
      }

      forward(x) {
        const [hidden] = this.lstm(x)
        return this.out(hidden)
      }
    }
    return { model: new Reader(), batch: () => torch.randn([2, 3, 3]), loss: (out) => out.abs().sum() }
  },

  gpt({ nn, torch }) {
    const F = nn.functional
    class GPT extends nn.Module {
      constructor() {
        super()
        this.tokens = new nn.Embedding(7, 8)
        this.positions = new nn.Embedding(4, 8)
        this.norm1 = new nn.LayerNorm(8)
        this.qkv = new nn.Linear(8, 24)
        this.proj = new nn.Linear(8, 8)
        this.norm2 = new nn.LayerNorm(8)
        this.up = new nn.Linear(8, 16)
        this.down = new nn.Linear(16, 8)
        this.drop = new nn.Dropout(0.25)
        this.head = new nn.Linear(8, 7, { bias: false })
      }

      forward(tokens) {
        const [batch, time] = tokens.shape
        let x = this.tokens(tokens).add(this.positions(torch.arange(time, { dtype: 'int64' })))
        const [q, k, v] = this.qkv(this.norm1(x)).view(batch, time, 3, 2, 4).permute(2, 0, 3, 1, 4).unbind(0)
        const future = torch.ones([time, time]).tril().eq(0)
        const scores = q.matmul(k.transpose(-2, -1)).mul(0.5).maskedFill(future, -1e4)
        const mixed = torch.softmax(scores, -1).matmul(v).transpose(1, 2).reshape(batch, time, 8)
        x = x.add(this.drop(this.proj(mixed)))
        x = x.add(this.down(F.gelu(this.up(this.norm2(x)))))
        return this.head(x)
      }
    }
    const target = torch.tensor([1, 2, 6, 0, 3, 3, 5, 4], { dtype: 'int64' })
    return {
      model: new GPT(),
      batch: () => torch.randint(0, 7, [2, 4]),
      loss: (out) => F.crossEntropy(out.reshape(8, 7), target),
      takesNaN: false,
    }
  },

  pointwise({ nn, torch }) {
    const scale = new nn.Parameter(torch.randn([4]))
    const model = (x) => {
      const a = torch.sin(x).mul(scale).add(torch.cos(x))
      const b = torch.exp(a.neg()).div(x.abs().add(1))
      const c = torch.where(a.gt(0), b, torch.sqrt(b)).clamp(-2, 1.5)
      return torch.maximum(c, torch.atan(a)).sub(torch.log1p(b)).pow(2)
    }
    return { model, parameters: [scale], batch: () => torch.randn([3, 4]), loss: (out) => out.sum() }
  },

  reductions({ nn, torch }) {
    const weight = new nn.Parameter(torch.randn([4, 4]))
    const model = (x) => {
      const y = x.matmul(weight)
      const [centered, size] = [y.sub(y.mean(-1, true)), y.square().sum(0, true)]
      const z = torch.cumsum(centered, 1).div(torch.sqrt(size.add(1)))
      return torch.cat([z, z.amax(1, true), torch.logsumexp(y, 1, true), y.prod(1, true)], 1)
    }
    return { model, parameters: [weight], batch: () => torch.randn([3, 4]), loss: (out) => out.mean() }
  },

  /** Integers and booleans among the results. */
  integers({ nn, torch }) {
    const fc = new nn.Linear(4, 5)
    const model = (x) => {
      const scores = fc(x)
      const best = scores.argmax(-1)
      const [top, where] = scores.topk(2, -1)
      const counts = best.add(3).mul(2).sub(where.sum(-1))
      const isLarge = scores.gt(0.25).logicalAnd(scores.lt(2))
      return [top.sum(-1).mul(counts.to('float32')), best, counts, isLarge, isLarge.any(1), best.cumsum(0)]
    }
    return { model, parameters: fc.parameters(), batch: () => torch.randn([3, 4]), loss: (out) => out[0].sum() }
  },
}

/** How a program uses its model. */
export const MODES = ['eval', 'outside', 'step']

/** Whether batch i of that program may hold a NaN in its first row, which leaves the others alone: rows do not meet. */
export const takesNaN = ({ model, mode }) => mode === 'eval' && ['mlp', 'cnn', 'lstm', 'pointwise'].includes(model)

/**
 * Runs a program: `calls` calls of a compiled model (mode 'eval': without gradients; 'outside': the backward and the optimizer are outside of the compiled
 * function; 'step': all of it is inside). `watch(loss or outputs)` is called after each.
 */
export function runProgram(api, { model: name, mode, dtype = 'float32', seed = 0, nan = false, calls = 4 }, backend, watch = () => {}) {
  const { torch, compile, noGrad, optim } = api
  const before = torch.getDefaultDtype()
  torch.setDefaultDtype(dtype)
  try {
    torch.manualSeed(seed)
    const { model, batch, loss, parameters } = MODELS[name](api)
    const trained = [...(parameters ?? model.parameters())]
    const inputs = Array.from({ length: calls }, () => {
      const input = batch()
      if (!nan) return input
      return input.mul(
        torch.tensor([NaN, ...Array.from({ length: input.shape[0] - 1 }, () => 1)]).reshape([-1, ...input.shape.slice(1).map(() => 1)]),
      )
    })
    torch.manualSeed(seed + 1)
    if (mode === 'eval') {
      model.eval?.()
      const f = compile((x) => model(x), { backend })
      for (const input of inputs) watch(read(noGrad(() => f(input))))
    } else if (mode === 'outside') {
      const optimizer = new optim.SGD(trained, { lr: 0.01, momentum: 0.5 })
      const f = compile((x) => model(x), { backend })
      for (const input of inputs) {
        optimizer.zeroGrad()
        const out = f(input)
        loss(out).backward()
        optimizer.step()
        watch(read(out), trained.map(read))
      }
    } else {
      const optimizer = new optim.Adam(trained, { lr: 0.01 })
      const f = compile(
        (x) => {
          optimizer.zeroGrad()
          const value = loss(model(x))
          value.backward()
          optimizer.step()
          return value.detach()
        },
        { backend },
      )
      for (const input of inputs) watch(read(f(input)), trained.map(read))
    }
  } finally {
    torch.setDefaultDtype(before)
  }
}

const read = (value) => (Array.isArray(value) ? value.map(read) : value.detach().toArray())
