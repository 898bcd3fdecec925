// Names of TensorFlow.js, NumPy and JAX (with Flax and Optax), in snake case: what is written here instead. Names of PyTorch are in absentNames.ts and unknownNames.ts, names of options in
// src/protocol/options.ts.

/** Names in snake case, and what to write instead of each, or why there is nothing. */
export type Reasons = Readonly<Record<string, string>>

const FREED = 'leave it out, as memory is freed when nothing refers to a tensor any more; x.dispose() frees it at once'
const LAYERS = 'layers are members of nn: new nn.Linear(…)'
const LOOP = 'write the loop: loss.backward(), then optimizer.step()'
const KEY = 'there are no keys: torch.manualSeed(seed) seeds the generator, and { generator } takes one of your own'
const PARAMETERS = 'model.parameters() lists the parameters, model.stateDict() has them by name'

/** The same reason for each of the names, which blanks separate. */
export const all = (reason: string, names: string): Reasons => Object.fromEntries(names.split(/\s+/).map((name) => [name, reason]))

/** Each name as a member of another object. */
const membersOf = (owner: string, names: string): Reasons =>
  Object.fromEntries(
    names
      .split(/\s+/)
      .map((pair) => pair.split(':'))
      .map(([name = '', ours = name]) => [name, `write ${owner}.${ours}`]),
  )

/** By the object that has none of the names. */
export const OTHER_LIBRARIES = {
  torch: {
    // How tensors are made.
    ...all('write torch.tensor(data)', 'array ndarray scalar tensor1d tensor2d tensor3d tensor4d tensor5d tensor6d fromiter'),
    variable: 'write torch.tensor(data, { requiresGrad: true }), or new nn.Parameter(tensor) in a layer',
    identity: 'write torch.eye(n)',
    random_normal: 'write torch.randn(size), or torch.normal(mean, std)',
    random_uniform: 'write torch.rand(size), or torch.empty(size).uniform_(low, high)',
    uniform: 'write torch.rand(size), or torch.empty(size).uniform_(low, high)',
    truncated_normal: 'write nn.init.truncNormal_(torch.empty(size))',
    geomspace: 'write torch.logspace(start, end, steps)',
    ...all(KEY, 'PRNGKey random_split'),
    // Shapes.
    newaxis: 'write x.unsqueeze(dim)',
    expand_dims: 'write torch.unsqueeze(x, dim)',
    repeat: 'write torch.repeatInterleave(x, repeats, dim); x.repeat(sizes) repeats the whole tensor, as torch.tile does',
    unstack: 'write torch.unbind(x, dim)',
    reverse: 'write torch.flip(x, dims)',
    slice: 'write x.slice(dim, start, end)',
    array_split: 'write torch.tensorSplit(x, sections)',
    broadcast_arrays: 'write torch.broadcastTensors([a, b])',
    pad: 'write nn.functional.pad(x, [left, right]), from the last dimension on',
    ...all('write x.index([rows, columns])', 'gather_nd gatherND'),
    one_hot: 'write nn.functional.oneHot(x, numClasses)',
    choose: 'write torch.gather(x, dim, index)',
    take_along_axis: 'write torch.takeAlongDim(x, index, dim)',
    compress: 'write torch.maskedSelect(x, mask)',
    // Arithmetic.
    power: 'write torch.pow(a, b)',
    mod: 'write torch.remainder(a, b)',
    divmod: "write torch.div(a, b, { roundingMode: 'floor' }) and torch.remainder(a, b)",
    floor_div: 'write torch.floorDivide(a, b)',
    squared_difference: 'write torch.sub(a, b).square()',
    ...all('write torch.clamp(x, min, max)', 'clip_by_value'),
    cbrt: 'write torch.pow(x, 1 / 3)',
    degrees: 'write torch.rad2deg(x)',
    radians: 'write torch.deg2rad(x)',
    rint: 'write torch.round(x)',
    around: 'write torch.round(x)',
    invert: 'write torch.bitwiseNot(x)',
    left_shift: 'write torch.bitwiseLeftShift(a, b)',
    right_shift: 'write torch.bitwiseRightShift(a, b)',
    array_equal: 'write torch.equal(a, b)',
    ...all("write x.to('float32')", 'cast as_type astype'),
    to_float: 'write x.float()',
    // Reductions.
    ...Object.fromEntries('sum mean max min prod any all'.split(' ').map((name) => [`reduce_${name}`, `write torch.${name}(x, dim)`])),
    percentile: 'write torch.quantile(x, q / 100)',
    average: 'write torch.mean(x), or torch.sum(x.mul(weights)).div(weights.sum())',
    ptp: 'write torch.amax(x).sub(torch.amin(x))',
    digitize: 'write torch.bucketize(x, boundaries)',
    segment_sum: 'write torch.zeros(size).indexAdd(0, ids, x)',
    in_top_k: 'write torch.topk(x, k)',
    ...membersOf('torch.linalg', 'inv eigh'),
    interp: 'there is no interp here: torch.searchsorted finds the places, torch.lerp interpolates',
    convolve: 'write nn.functional.conv1d(x, kernel.flip([0]))',
    correlate: 'write nn.functional.conv1d(x, kernel)',
    // Functions of networks.
    ...membersOf(
      'nn.functional',
      'gelu elu leaky_relu:leakyRelu softplus silu swish:silu max_pool:maxPool2d avg_pool:avgPool2d softmax_cross_entropy:crossEntropy sigmoid_cross_entropy:binaryCrossEntropyWithLogits batch_normalization:batchNorm local_response_normalization:localResponseNorm resize_bilinear:interpolate',
    ),
    ...all('write nn.functional.conv2d(x, weight, null, { groups: x.size(1) })', 'depthwise_conv2d'),
    ...all('write nn.functional.conv2d with { groups }, then nn.functional.conv2d with a kernel of size 1', 'separable_conv2d'),
    ...all(LAYERS, 'layers keras'),
    ...all('write a class that extends nn.Module, or new nn.Sequential(…)', 'model sequential'),
    losses: 'losses are in nn.functional: nn.functional.crossEntropy(logits, target)',
    metrics: 'there are no metrics here; write torch.eq(prediction, target).float().mean()',
    train: 'optimizers are members of torch.optim: new torch.optim.Adam(model.parameters(), { lr: 0.001 })',
    image: 'write nn.functional.interpolate(x, { size })',
    // Derivatives, and functions of functions.
    ...Object.fromEntries(
      [
        ['grad', 'grad'],
        ['grads', 'grad'],
        ['value_and_grad', 'gradAndValue'],
        ['value_and_grads', 'gradAndValue'],
        ['jacobian', 'jacrev'],
        ['jacrev', 'jacrev'],
        ['jacfwd', 'jacfwd'],
        ['hessian', 'hessian'],
        ['vjp', 'vjp'],
        ['jvp', 'jvp'],
        ['vectorize', 'vmap'],
      ].map(([name = '', ours = '']) => [name, `import { ${ours} } from 'tensorfx/func'`]),
    ),
    pmap: "runRanks of 'tensorfx/distributed' runs a program on several threads or processes",
    custom_grad: 'write a class that extends torch.autograd.Function',
    ...all('write x.detach()', 'stop_gradient'),
    ...all("import { checkpoint } from 'tensorfx/autograd'", 'checkpoint remat'),
    ...all("import { makeFx } from 'tensorfx/aot'", 'make_jaxpr'),
    lax: 'its functions are members of torch itself: torch.scan, torch.whileLoop and torch.cond',
    switch: 'write torch.cond(condition, trueFn, falseFn, operands)',
    fori_loop: 'write a loop of JavaScript, or torch.whileLoop(condition, body, carried)',
    associative_scan: 'write torch.scan(combine, init, xs)',
    ...all("import from 'tensorfx/pytree'", 'tree_map tree_util tree_leaves tree_flatten'),
    // What has no counterpart, as nothing needs it.
    ...all(FREED, 'tidy keep dispose'),
    ...all(
      "leave it out, or import tensorfx/webgpu and write x.to('webgpu') for the graphics card",
      'device_put devices local_devices device_count block_until_ready set_backend get_backend ready',
    ),
    print: 'write console.log(String(x))',
    data: "write a loop over your batches, with DistributedSampler of 'tensorfx/distributed' for several ranks",
    ...all("import from 'tensorfx/interop'", 'io loadtxt savetxt fromfile load_layers_model'),
  },
  tensor: {
    // What a program reads.
    ...all('write x.toTypedArray(); it needs no await', 'data_sync buffer buffer_sync tobytes bytes'),
    ...all('write x.toArray(); it needs no await', 'array array_sync'),
    as_scalar: 'write x.item()',
    rank: 'write x.ndim',
    itemsize: 'write x.elementSize()',
    nbytes: 'write x.numel * x.elementSize()',
    print: 'write console.log(String(x))',
    is_disposed: 'a tensor that was disposed throws when it is used',
    ...all('leave it out, as results are there when an operator returns', 'block_until_ready ready'),
    ...all('write x.device: a tensor is on one device', 'devices sharding addressable_data'),
    // Dtypes and shapes.
    ...all("write x.to('float32')", 'as_type astype cast'),
    to_float: 'write x.float()',
    to_int: 'write x.int()',
    to_bool: 'write x.bool()',
    ...all('write x.reshape(sizes)', 'as1D as2D as3D as4D'),
    expand_dims: 'write x.unsqueeze(dim)',
    flat: 'write x.flatten()',
    swap_axes: 'write x.swapaxes(dim0, dim1)',
    reverse: 'write x.flip(dims)',
    unstack: 'write x.unbind(dim)',
    ...all('write torch.cat([x, y], dim)', 'concat'),
    pad: 'write torch.nn.functional.pad(x, [left, right]), from the last dimension on',
    one_hot: 'write torch.nn.functional.oneHot(x, numClasses)',
    resize_bilinear: "write torch.nn.functional.interpolate(x, { size, mode: 'bilinear' })",
    subarray: 'write x.slice(0, start, end)',
    // Arithmetic and writes.
    power: 'write x.pow(exponent)',
    mod: 'write x.remainder(other)',
    rsub: 'write torch.sub(other, x)',
    squared_difference: 'write x.sub(y).square()',
    ptp: 'write x.amax().sub(x.amin())',
    searchsorted: 'write torch.searchsorted(x, values)',
    copy: 'write x.clone()',
    fill: 'write x.fill_(value)',
    assign: 'write x.copy_(y), within torch.noGrad(() => …) if x requires grad',
    at: 'write x[2] to read, and x.select(0, 2).copy_(value) or torch.indexPut(x, [index], value) to write',
    set: 'write x.select(0, i).copy_(value)',
    get: 'write x.select(0, i).item()',
    ...all('write for (const row of x), or an operator for all elements at once', 'filter reduce'),
  },
  nn: {
    Dense: 'write nn.Linear, which needs the number of inputs too: new nn.Linear(inFeatures, outFeatures)',
    ...all('write nn.Conv1d, nn.Conv2d or nn.Conv3d', 'Conv'),
    ...all('write nn.ConvTranspose2d', 'ConvTranspose Conv2DTranspose'),
    ...all('write nn.Conv2d with { groups: inChannels }', 'DepthwiseConv2D SeparableConv2D'),
    ...all('write nn.BatchNorm1d or nn.BatchNorm2d', 'BatchNormalization BatchNorm'),
    LayerNormalization: 'write nn.LayerNorm',
    GroupNormalization: 'write nn.GroupNorm',
    ...all('write nn.MaxPool2d', 'MaxPooling2D MaxPool'),
    MaxPooling1D: 'write nn.MaxPool1d',
    ...all('write nn.AvgPool2d', 'AveragePooling2D AvgPool'),
    GlobalAveragePooling2D: 'write nn.AdaptiveAvgPool2d: new nn.AdaptiveAvgPool2d(1)',
    GlobalMaxPooling2D: 'write nn.AdaptiveMaxPool2d: new nn.AdaptiveMaxPool2d(1)',
    Embed: 'write nn.Embedding',
    SimpleRNN: 'write nn.RNN',
    Bidirectional: 'write nn.LSTM with { bidirectional: true }',
    ...all('write nn.MultiheadAttention', 'MultiHeadAttention MultiHeadDotProductAttention SelfAttention'),
    UpSampling2D: 'write nn.Upsample',
    ZeroPadding2D: 'write nn.ZeroPad2d',
    SpatialDropout2D: 'write nn.Dropout2d',
    Activation: 'write nn.ReLU, nn.GELU, …',
    Reshape: 'write nn.Unflatten or nn.Flatten, or x.reshape(sizes) in forward',
    Permute: 'write x.permute(dims) in forward',
    ...all('write the arithmetic in forward: x.add(y), torch.cat([x, y], 1)', 'Add Concatenate Multiply Dot Lambda RepeatVector TimeDistributed'),
    ...all('write a class that extends nn.Module', 'Model Layer compact'),
    ...all('leave it out, as a layer takes its input when it is called', 'Input InputLayer'),
    initializers: 'write nn.init',
  },
  optim: {
    ...all('write torch.optim.SGD with { momentum: 0.9 }', 'momentum Momentum'),
    ...all('write torch.optim.ExponentialLR', 'exponential_decay ExponentialDecay'),
    ...all('write torch.optim.CosineAnnealingLR', 'cosine_decay_schedule CosineDecay'),
    warmup_cosine_decay_schedule: 'write torch.optim.SequentialLR of torch.optim.LinearLR and torch.optim.CosineAnnealingLR',
    schedules: 'schedules are members of optim itself: torch.optim.StepLR',
    chain: 'an optimizer is one object: new torch.optim.AdamW(parameters, { weightDecay: 0.01 })',
    clip_by_global_norm: 'write nn.utils.clipGradNorm_(model.parameters(), maxNorm)',
    apply_updates: 'write optimizer.step()',
  },
  module: {
    add: 'write sequential.append(layer), or new nn.Sequential(first, second)',
    predict: 'call the model: torch.noGrad(() => model(x)), after model.eval()',
    ...all(LOOP, 'fit train_on_batch'),
    compile: "write import { compile } from 'tensorfx', and compile(model)",
    evaluate: 'write the loop, within torch.noGrad(() => …) and after model.eval()',
    summary: 'write console.log(String(model))',
    count_params: 'add up p.numel of model.parameters()',
    ...all(PARAMETERS, 'get_weights trainable_weights trainable_variables'),
    set_weights: 'write model.loadStateDict(state)',
    ...all('write model.requiresGrad_(false) or model.requiresGrad_(true)', 'trainable'),
  },
  optimizer: {
    minimize: 'write loss.backward(), then optimizer.step()',
    ...all('write optimizer.step(), which reads the gradients of the parameters', 'apply_gradients'),
    compute_gradients: 'write loss.backward()',
    ...all('the learning rate belongs to the groups: optimizer.paramGroups[0].lr', 'learning_rate set_learning_rate'),
  },
} satisfies Readonly<Record<string, Reasons>>
