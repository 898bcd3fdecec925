// The rows of bench:dynamic: programs whose tensors have other sizes from call to call. `make(library, wrap)` returns a function that does one round of calls and returns what the candidates are compared by; `wrap`
// compiles a function or leaves it as it is. `graphs`: the most graphs that one path for all sizes may take; `aims`: eager's time as a multiple of the dynamic one, in the first round, in the second and in later ones.
const WIDTH = 128

/** A decoder whose cache grows by cat: 4 layers, 4 heads. `next` takes a token and the cache. */
function decoder({ nn, torch }, { vocabulary = 65, context = 256, heads = 4, layers = 4 } = {}) {
  torch.manualSeed(1)
  const F = nn.functional
  class Layer extends nn.Module {
    constructor() {
      super()
      this.norm1 = new nn.LayerNorm(WIDTH)
      this.qkv = new nn.Linear(WIDTH, 3 * WIDTH)
      this.project = new nn.Linear(WIDTH, WIDTH)
      this.norm2 = new nn.LayerNorm(WIDTH)
      this.up = new nn.Linear(WIDTH, 4 * WIDTH)
      this.down = new nn.Linear(4 * WIDTH, WIDTH)
    }

    forward(x, [pastKeys, pastValues]) {
      const [q, k, v] = this.qkv(this.norm1(x))
        .chunk(3, -1)
        .map((part) => part.view([1, heads, WIDTH / heads]).transpose(0, 1))
      const keys = pastKeys === undefined ? k : torch.cat([pastKeys, k], 1)
      const values = pastValues === undefined ? v : torch.cat([pastValues, v], 1)
      const weights = q
        .matmul(keys.transpose(1, 2))
        .mul(1 / Math.sqrt(WIDTH / heads))
        .softmax(-1)
      const y = x.add(this.project(weights.matmul(values).transpose(0, 1).reshape([1, WIDTH])))
      return [y.add(this.down(F.gelu(this.up(this.norm2(y))))), [keys, values]]
    }
  }
  class Decoder extends nn.Module {
    constructor() {
      super()
      this.tokens = new nn.Embedding(vocabulary, WIDTH)
      this.positions = new nn.Embedding(context, WIDTH)
      this.layers = new nn.ModuleList(Array.from({ length: layers }, () => new Layer()))
      this.norm = new nn.LayerNorm(WIDTH)
      this.head = new nn.Linear(WIDTH, vocabulary)
    }

    /** The logits, and the cache with this token. */
    forward(token, position, cache) {
      let x = this.tokens(token).add(this.positions(position))
      const longer = [...this.layers].map((layer, i) => {
        const [y, own] = layer(x, cache[i] ?? [])
        x = y
        return own
      })
      return [this.head(this.norm(x)), longer]
    }
  }
  return new Decoder().eval()
}

const index = (torch, value) => torch.tensor([value], { dtype: 'int64' })

/** Generates `tokens` tokens greedily. */
function generation(library, wrap, tokens) {
  const { torch, noGrad } = library
  const model = decoder(library)
  const step = wrap((token, position, cache) => noGrad(() => model(token, position, cache)))
  return () => {
    let [token, cache] = [1, []]
    const seen = []
    for (let i = 0; i < tokens; i++) {
      const [logits, longer] = step(index(torch, token), index(torch, i), cache)
      cache = longer
      token = logits.argmax(-1).item()
      seen.push(token)
    }
    return seen
  }
}

/** One decoding step at a fixed length, many times. */
function fixedLength(library, wrap, length, times) {
  const { torch, noGrad } = library
  const model = decoder(library)
  const step = wrap((token, position, cache) => noGrad(() => model(token, position, cache)))
  const cache = [...model.layers].map(() => [torch.randn([4, length, 32]), torch.randn([4, length, 32])])
  const [token, position] = [index(torch, 3), index(torch, length)]
  return () => {
    let last = null
    for (let i = 0; i < times; i++) [last] = step(token, position, cache)
    return last.argmax(-1).toArray()
  }
}

function encoder({ nn, torch }) {
  torch.manualSeed(1)
  const layer = new nn.TransformerEncoderLayer(64, 4, { dimFeedforward: 256, batchFirst: true, dropout: 0 })
  return new nn.TransformerEncoder(layer, 2).eval()
}

/** 40 shapes: batch sizes 2 to 9, lengths 8 to 40. */
const BATCHES = Array.from({ length: 40 }, (_, i) => [2 + (i % 8), 8 + 8 * Math.floor(i / 8)])

/** Trains a classifier on seven batches of 64 and one of 23. `makeStep` gets the loss of a batch, and the optimizer. */
function training({ nn, optim, torch }, makeStep) {
  torch.manualSeed(1)
  const model = new nn.Sequential(new nn.Linear(64, 256), new nn.ReLU(), new nn.Linear(256, 256), new nn.ReLU(), new nn.Linear(256, 10))
  const optimizer = new optim.SGD(model.parameters(), { lr: 0.01 })
  const batches = [64, 64, 64, 64, 64, 64, 64, 23].map((n) => [torch.randn([n, 64]), torch.randint(0, 10, [n])])
  const step = makeStep((x, y) => nn.functional.crossEntropy(model(x), y), optimizer)
  return () => batches.map(([x, y]) => step(x, y).item())
}

export const rows = [
  {
    name: 'GPT, 4 layers of 128, cache grown by cat, 256 tokens',
    graphs: 3,
    aims: { first: 1, second: 1.2, later: 1.2 },
    make: (library, wrap) => generation(library, wrap, 256),
  },
  {
    name: 'GPT, the same step at a cache of 128, 64 times',
    aims: { later: 1 },
    make: (library, wrap) => fixedLength(library, wrap, 128, 64),
  },
  {
    name: 'encoder, 40 batch sizes and lengths',
    graphs: 3,
    aims: { later: 1.2 },
    make(library, wrap) {
      const { torch, noGrad } = library
      const model = encoder(library)
      const run = wrap((x) => noGrad(() => model(x)))
      const inputs = BATCHES.map(([batch, length]) => torch.randn([batch, length, 64]))
      return () => inputs.map((x) => run(x).sum().item())
    },
  },
  {
    name: 'training step, last batch ragged',
    graphs: 4,
    aims: { later: 1 },
    make: (library, wrap) =>
      training(library, (lossOf, optimizer) =>
        wrap((x, y) => {
          optimizer.zeroGrad()
          const loss = lossOf(x, y)
          loss.backward()
          optimizer.step()
          return loss.detach()
        }),
      ),
  },
  {
    name: 'training step, backward outside, last batch ragged',
    graphs: 2,
    aims: { later: 1 },
    make: (library, wrap) =>
      training(library, (lossOf, optimizer) => {
        const compiled = wrap(lossOf)
        return (x, y) => {
          optimizer.zeroGrad()
          const loss = compiled(x, y)
          loss.backward()
          optimizer.step()
          return loss
        }
      }),
  },
  {
    name: 'ResNet-18, images of 5 sizes',
    graphs: 3,
    aims: { later: 0.95 },
    async make(library, wrap) {
      const { torch, noGrad } = library
      torch.manualSeed(1)
      const model = new (await import('../../examples/resnet18/model.mjs')).ResNet18().eval()
      const run = wrap((x) => noGrad(() => model(x)))
      const inputs = [64, 96, 80, 112, 128].map((n) => torch.randn([1, 3, n, n]))
      return () => inputs.map((x) => run(x).sum().item())
    },
  },
]
