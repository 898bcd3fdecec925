// The rows of bench:engines. Each has the shapes of its inputs, what a build of tensorfx computes from them, and the same for other libraries where they have it:
// `pytorch` as Python text, `tfjs` and `jax` as for bench:ops; onnxruntime-web runs our export. `aim` says how many times as fast as the base build
// (commit 0ab0f8c, with relaxed SIMD) and PyTorch on one thread a row should be.

const nested = (depth, of, x) => (depth === 0 ? x : nested(depth - 1, of, of(x)))

const sgemm = (size, aim) => ({
  name: `sgemm ${size}`,
  inputs: { x: [size, size], y: [size, size] },
  ours: ({ x, y }) => x.matmul(y),
  pytorch: { run: 'x @ y' },
  tfjs: (tf, { x, y }) => tf.matMul(x, y),
  jax: (jax, { x, y }) => jax.numpy.matmul(x, y),
  aim,
})

/** A layer without bias, whose weights stay. */
const linear = (tokens, from, to, aim) => ({
  name: `linear ${tokens}x${from}x${to}`,
  inputs: { x: [tokens, from], w: [to, from] },
  ours: ({ x, w }, { F }) => F.linear(x, w),
  pytorch: { run: 'F.linear(x, w)' },
  tfjs: (tf, { x, w }) => tf.matMul(x, w, false, true),
  jax: (jax, { x, w }) => jax.numpy.matmul(x, jax.numpy.transpose(w, [1, 0])),
  aim,
})

const channelsLast = {
  prepareTfjs: (tf, { x, w }) => ({ x: tf.transpose(x, [0, 2, 3, 1]), w: tf.transpose(w, [2, 3, 1, 0]) }),
  fromTfjs: (tf, y) => tf.transpose(y, [0, 3, 1, 2]),
}

const convolution = (channels, size, kernel, { stride = 1, into = channels, aim, name = '' }) => {
  const padding = (kernel - 1) / 2
  return {
    name: `conv ${kernel}x${kernel} ${channels} ${size}²${stride === 1 ? '' : ` stride ${stride}`}${name}`,
    inputs: { x: [1, channels, size, size], w: [into, channels, kernel, kernel] },
    ours: ({ x, w }, { F }) => F.conv2d(x, w, { stride, padding }),
    pytorch: { run: `F.conv2d(x, w, stride=${stride}, padding=${padding})` },
    ...channelsLast,
    tfjs: (tf, { x, w }) => tf.conv2d(x, w, stride, padding),
    jax: (jax, { x, w }) =>
      jax.lax.convGeneralDilated(
        x,
        w,
        [stride, stride],
        [
          [padding, padding],
          [padding, padding],
        ],
      ),
    aim,
  }
}

/** Four convolutions in a row, compiled together, with options of our compile: what a convolution takes where its neighbours are convolutions. */
const convolutionsInGraph = (channels, size, aim, options) => ({
  name: `4 convs 3x3 ${channels} ${size}² in a graph${options === undefined ? '' : ', fast'}`,
  options,
  inputs: { x: [1, channels, size, size], w: { shape: [channels, channels, 3, 3], scale: 1 / Math.sqrt(9 * channels) } },
  ours: ({ x, w }, { F }) => nested(4, (y) => F.relu(F.conv2d(y, w, { padding: 1 })), x),
  modes: ['compiled'],
  pytorch: { setup: 'step = lambda y: F.relu(F.conv2d(y, w, padding=1))', run: 'step(step(step(step(x))))' },
  ...channelsLast,
  tfjs: (tf, { x, w }) => nested(4, (y) => tf.relu(tf.conv2d(y, w, 1, 1)), x),
  aim,
})

const rowwise = (name, python, aim) => ({
  name: `${name} 1024²`,
  inputs: { x: [1024, 1024] },
  ours: ({ x }, { F }) => F[name](x, 1),
  pytorch: { run: `F.${python}(x, 1)` },
  tfjs: (tf, { x }) => tf[name](x, 1),
  jax: (jax, { x }) => jax.nn[name](x, 1),
  aim,
})

const permuted = (shape, order, aim) => ({
  name: `${shape.length === 2 ? 'transpose' : 'permute'} ${shape.join('x')}${shape.length === 2 ? '' : ` as ${order.join('')}`}`,
  inputs: { x: shape },
  ours: ({ x }) => x.permute(...order).contiguous(),
  pytorch: { run: `x.permute(${order.join(', ')}).contiguous()` },
  tfjs: (tf, { x }) => tf.transpose(x, order),
  jax: (jax, { x }) => jax.numpy.transpose(x, order),
  aim,
})

const attention = (heads, tokens, depth, isCausal, aim) => ({
  name: `attention ${heads}x${tokens}x${depth}${isCausal ? ' causal' : ''}`,
  inputs: { q: [1, heads, tokens, depth], k: [1, heads, tokens, depth], v: [1, heads, tokens, depth] },
  ours: ({ q, k, v }, { F }) => F.scaledDotProductAttention(q, k, v, { isCausal }),
  pytorch: {
    setup: `
mask = torch.ones(${tokens}, ${tokens}).triu(1).bool()
scores = lambda: (q @ k.transpose(-1, -2)) * ${depth} ** -0.5
attention = getattr(F, 'scaled_dot_product_attention', lambda q, k, v, is_causal: (scores().masked_fill_(mask, float('-inf')) if is_causal else scores()).softmax(-1) @ v)`,
    run: `attention(q, k, v, is_causal=${isCausal ? 'True' : 'False'})`,
  },
  tfjs: isCausal ? undefined : (tf, { q, k, v }) => tf.matMul(tf.softmax(tf.mul(tf.matMul(q, k, false, true), tf.scalar(depth ** -0.5))), v),
  aim,
})

const trainingOf = (model, lossOf, { optim }) => {
  const optimizer = new optim.SGD(model.parameters(), { lr: 0.001 })
  return (...inputs) => {
    optimizer.zeroGrad()
    const loss = lossOf(...inputs)
    loss.backward()
    optimizer.step()
    return loss.detach()
  }
}

const resnet = async (build, options) => {
  build.torch.manualSeed(1)
  return new (await build.example('resnet18/model.mjs')).ResNet18(options)
}

const gpt = async ({ torch, example }) => {
  torch.manualSeed(1)
  return new (await example('gpt/model.mjs')).GPT({ vocabulary: 65, context: 64, width: 64, heads: 4, layers: 3 })
}
const GPT_IN_PYTHON = 'models.GPT(vocabulary=65, context=64, width=64, heads=4, layers=3)'
const text = { shape: [16, 64], below: 65 }

export const rows = [
  sgemm(64, { base: 0.97 }),
  sgemm(128, { base: 1.1, pytorch: 0.48 }),
  sgemm(512, { base: 1.1, pytorch: 0.48 }),
  sgemm(1024, { base: 1.1, pytorch: 0.48 }),
  linear(32, 784, 512, { base: 1.2 }),
  linear(1, 1024, 1024, { base: 4 }),
  linear(2, 1024, 1024, { base: 3 }),
  linear(4, 1024, 1024, { base: 1.9 }),
  linear(8, 1024, 1024, { base: 1.5 }),
  {
    name: 'mv 1024²',
    inputs: { x: [1024, 1024], y: [1024] },
    ours: ({ x, y }) => x.mv(y),
    pytorch: { run: 'x.mv(y)' },
    tfjs: (tf, { x, y }) => tf.dot(x, y),
    jax: (jax, { x, y }) => jax.numpy.matmul(x, y),
    aim: { base: 6, pytorch: 0.85 },
  },
  {
    name: 'vector times matrix 1024²',
    inputs: { x: [1, 1024], y: [1024, 1024] },
    ours: ({ x, y }) => x.matmul(y),
    pytorch: { run: 'x @ y' },
    tfjs: (tf, { x, y }) => tf.matMul(x, y),
    jax: (jax, { x, y }) => jax.numpy.matmul(x, y),
    aim: { base: 3 },
  },
  convolution(64, 56, 3, { aim: { base: 1.8, pytorch: 0.9 } }),
  convolution(128, 28, 3, { aim: { base: 1.8, pytorch: 0.9 } }),
  convolution(256, 14, 3, { aim: { base: 1.8, pytorch: 0.9 } }),
  convolution(512, 7, 3, { aim: { base: 1.4 } }),
  convolution(64, 56, 3, { stride: 2, into: 128, aim: { base: 1.1 } }),
  convolution(64, 56, 1, { stride: 2, into: 128, aim: { base: 1.4 } }),
  convolutionsInGraph(64, 56, { base: 2.2 }),
  convolutionsInGraph(128, 28, { base: 2.2 }),
  convolutionsInGraph(256, 14, { base: 2.2 }),
  convolutionsInGraph(64, 56, { base: 3.5 }, { convolution: 'fast' }),
  convolutionsInGraph(128, 28, { base: 3.5 }, { convolution: 'fast' }),
  convolutionsInGraph(256, 14, {}, { convolution: 'fast' }),
  rowwise('softmax', 'softmax', { base: 2, pytorch: 0.58 }),
  rowwise('logSoftmax', 'log_softmax', { base: 2, pytorch: 0.58 }),
  {
    name: 'rmsNorm 1024²',
    inputs: { x: [1024, 1024], w: [1024] },
    ours: ({ x, w }, { F }) => F.rmsNorm(x, [1024], w),
    pytorch: { run: 'F.rms_norm(x, (1024,), w)' },
    aim: { base: 0.97 },
  },
  {
    name: 'layerNorm 1024²',
    inputs: { x: [1024, 1024], w: [1024], b: [1024] },
    ours: ({ x, w, b }, { F }) => F.layerNorm(x, [1024], w, b),
    pytorch: { run: 'F.layer_norm(x, (1024,), w, b)' },
    aim: {},
  },
  {
    name: 'gelu 1024²',
    inputs: { x: [1024, 1024] },
    ours: ({ x }, { F }) => F.gelu(x),
    pytorch: { run: 'F.gelu(x)' },
    aim: {},
  },
  {
    name: 'chain of five pointwise operators 1024²',
    inputs: { x: [1024, 1024], y: [1024, 1024] },
    ours: ({ x, y }) => x.mul(y).add(1).relu().sub(y).mul(x),
    pytorch: { run: '(F.relu(x * y + 1) - y) * x' },
    aim: {},
  },
  {
    name: 'sum of rows 1024²',
    inputs: { x: [1024, 1024] },
    ours: ({ x }) => x.sum(1),
    pytorch: { run: 'x.sum(1)' },
    aim: {},
  },
  {
    name: 'cumsum 1024²',
    inputs: { x: [1024, 1024] },
    ours: ({ x }) => x.cumsum(1),
    pytorch: { run: 'x.cumsum(1)' },
    aim: {},
  },
  permuted([1024, 1024], [1, 0], { base: 5, pytorch: 1 }),
  permuted([16, 64, 12, 64], [0, 2, 1, 3], { base: 0.97, pytorch: 1 }),
  permuted([8, 56, 56, 64], [0, 3, 1, 2], { base: 3, pytorch: 1 }),
  permuted([8, 64, 56, 56], [0, 2, 3, 1], { base: 3, pytorch: 1 }),
  ...[
    [32, 128, 32],
    [8, 512, 64],
    [12, 1024, 64],
  ].flatMap(([heads, tokens, depth]) => [
    attention(heads, tokens, depth, false, { base: 1.4, pytorch: 0.42 }),
    attention(heads, tokens, depth, true, { base: 1.8 }),
  ]),
  {
    name: 'ResNet-18 inference',
    inputs: { x: [1, 3, 224, 224] },
    prepare: async (build) => ({ model: (await resnet(build)).eval() }),
    ours: ({ x }, { model }) => model(x),
    pytorch: { setup: 'model = models.ResNet18().eval()', run: 'model(x)' },
    aim: { base: 1.7, pytorch: 0.9 },
  },
  {
    name: 'ResNet-18 training step',
    inputs: { x: [4, 3, 64, 64], y: { shape: [4], below: 10 } },
    prepare: async (build) => {
      const model = await resnet(build, { classes: 10 })
      return { step: trainingOf(model, (x, y) => build.F.crossEntropy(model(x), y), build) }
    },
    ours: ({ x, y }, { step }) => step(x, y),
    pytorch: {
      setup: 'model = models.ResNet18(classes=10)\nstep = models.training(model, lambda x, y: F.cross_entropy(model(x), y))',
      run: 'step(x, y)',
    },
    trains: true,
    aim: { base: 1.3 },
  },
  {
    name: 'GPT inference',
    inputs: { x: text },
    prepare: async (build) => ({ model: (await gpt(build)).eval() }),
    ours: ({ x }, { model }) => model(x),
    pytorch: { setup: `model = ${GPT_IN_PYTHON}.eval()`, run: 'model(x)' },
    aim: { base: 1.2 },
  },
  {
    name: 'GPT training step',
    inputs: { x: text, y: text },
    prepare: async (build) => {
      const model = await gpt(build)
      return { step: trainingOf(model, (x, y) => build.F.crossEntropy(model(x).flatten(0, 1), y.flatten()), build) }
    },
    ours: ({ x, y }, { step }) => step(x, y),
    pytorch: {
      setup: `model = ${GPT_IN_PYTHON}\nstep = models.training(model, lambda x, y: F.cross_entropy(model(x).flatten(0, 1), y.flatten()))`,
      run: 'step(x, y)',
    },
    trains: true,
    aim: { base: 1.15 },
  },
]
