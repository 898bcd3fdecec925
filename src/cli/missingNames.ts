// The functions of PyTorch 2.13's torch that work on tensors or make them, and the methods and properties of its tensors, that do not exist here: `tensorfx ops --missing`
// lists them, and a test compares the lists with what there is. (install/absentNames.ts says at run time what to write instead, also for other namespaces.)

/** What torch lacks, by the reason. */
export const MISSING_FUNCTIONS: Readonly<Record<string, string>> = {
  'this part of complex numbers is not here yet': `is_conj`,
  'there are no sparse and no quantized tensors': `choose_qparams_optimized crow_indices_copy dequantize dsmm fake_quantize_per_channel_affine fake_quantize_per_tensor_affine fbgemm_linear_int8_weight
    fused_moving_avg_obs_fake_quant hsmm hspmm quantize_per_tensor quantized_batch_norm saddmm smm sparse_coo_tensor spmm sspaddmm`,
  'there is no default device, there are no threads between operators, and memory formats are options': `compiled_with_cxx11_abi cudnn_convolution get_default_device get_device get_num_interop_threads is_distributed is_inference
    is_inference_mode_enabled is_warn_always_enabled set_default_device set_flush_denormal set_num_interop_threads set_printoptions`,
  'tensors have it: x.numel, x.item(), x.dtype, x.detach_()': `detach_ is_nonzero is_same_size is_signed is_storage numel`,
  'it lives in tensorfx, tensorfx/interop or tensorfx/func': `compile from_dlpack from_file from_numpy frombuffer load save vmap`,
  'manualSeed and Generator have the seed': `initial_seed seed`,
  'only the passes of PyTorch call it': `slice_inverse`,
  'only the layers of PyTorch call it, with numbers for modes; torch.nn.functional and torch.nn have it': `affine_grid_generator alpha_dropout_ binary_cross_entropy_with_logits convolution cosine_embedding_loss ctc_loss dropout_ embedding_bag
    feature_alpha_dropout_ feature_dropout_ gru gru_cell hinge_embedding_loss kl_div lstm lstm_cell
    margin_ranking_loss native_channel_shuffle native_dropout native_norm
    norm_except_dim poisson_nll_loss rnn_relu rnn_relu_cell rnn_tanh rnn_tanh_cell triplet_margin_loss`,
  'PyTorch has deprecated it': `frobenius_norm ger_ matrix_rank nuclear_norm range`,
  'it is missing: rare statistics': `binomial hash_tensor lobpcg segment_reduce`,
}

/** What tensors lack, by the reason. */
export const MISSING_METHODS: Readonly<Record<string, string>> = {
  'this part of complex numbers is not here yet': `chalf is_conj`,
  'there are no sparse and no quantized tensors': `dense_dim dequantize indices int_repr is_quantized is_sparse q_scale q_zero_point qscheme smm sparse_dim sparse_mask sspaddmm to_dense to_sparse
    values`,
  'a tensor is on the CPU or, with tensorfx/webgpu, on the graphics card: `x.to(device)` moves it; there are no memory formats': `cuda dim_order get_device is_cuda is_meta is_pinned layout pin_memory record_stream to_mkldnn xpu`,
  'dimensions have no names': `align_as align_to names refine_names rename rename_`,
  'a storage is internal: tensors have offset, strides, elementSize() and numel': `data_ptr is_set_to is_shared itemsize nbytes share_memory_ storage_offset storage_type untyped_storage version`,
  'another name is here: toArray, toTypedArray, ndim, numel, dtype, item, detach, t': `data is_nonzero is_same_size is_signed ndimension nelement new numpy tolist`,
  'it calls Python, or belongs to subclasses of tensors': `apply_ as_subclass map_ module_load reinforce`,
  'the tape is internal': `is_inference retains_grad`,
  'it is missing: two in-place forms': `float_power_ orgqr polygamma_`,
}

/** The names in PyTorch, each with the reason. */
export const missingNames = (): readonly { readonly name: string; readonly reason: string }[] =>
  [['torch', MISSING_FUNCTIONS] as const, ['torch.Tensor', MISSING_METHODS] as const].flatMap(([owner, table]) =>
    Object.entries(table).flatMap(([reason, text]) =>
      text
        .trim()
        .split(/\s+/)
        .map((name) => ({ name: `${owner}.${name}`, reason })),
    ),
  )
