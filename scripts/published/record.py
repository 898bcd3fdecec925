"""Records tiny random models as Hugging Face's transformers publishes them, a folder with config.json and model.safetensors each, and what they compute. Needs torch and transformers.

    python3 record.py        writes test/goldens/families/published/NAME/{config.json,model.safetensors,outputs.json}
"""
import json
from pathlib import Path

import torch
import transformers as hf

FOLDER = Path(__file__).resolve().parents[2] / 'test' / 'goldens' / 'families' / 'published'


def floats(shape, seed):
    """Multiples of 1/64, whose decimals are short."""
    return (torch.rand(shape, generator=torch.Generator().manual_seed(seed)) * 128 - 64).round() / 64


def tokens(shape, seed, n):
    return torch.randint(0, n, shape, generator=torch.Generator().manual_seed(seed))


def initialised(model):
    """All parameters drawn: those that a library leaves at 0 or 1 would not tell whether they are read."""
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for name, p in model.named_parameters():
            drawn = torch.randn(p.shape, generator=generator)
            p.copy_(drawn / (p.numel() / p.shape[0]) ** 0.5 if p.dim() > 1 else 0.1 * drawn + (1 if name.endswith('weight') else 0))
    return model.eval()


def stored(t):
    data = [float(f'{v:.9g}') for v in t.flatten().tolist()] if t.is_floating_point() else t.flatten().tolist()
    return {'dtype': str(t.dtype).replace('torch.', ''), 'shape': list(t.shape), 'data': data}


TEXT = dict(vocab_size=24, hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=16)
TOWER = dict(hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2)
IDS = lambda: dict(input_ids=tokens((2, 7), 1, 24))

# The model, its inputs by name, and which of its outputs are recorded.
MODELS = {
    'vit': (
        lambda: hf.ViTForImageClassification(
            hf.ViTConfig(**{**TOWER, 'num_hidden_layers': 2}, image_size=16, patch_size=8, id2label={0: 'cat', 1: 'dog', 2: 'owl'}, label2id={'cat': 0, 'dog': 1, 'owl': 2})
        ),
        lambda: dict(pixel_values=floats((2, 3, 16, 16), 1)),
        ['logits'],
    ),
    'gpt2': (lambda: hf.GPT2LMHeadModel(hf.GPT2Config(vocab_size=24, n_positions=12, n_embd=16, n_layer=2, n_head=2)), IDS, ['logits']),
    'llama': (lambda: hf.LlamaForCausalLM(hf.LlamaConfig(**TEXT)), IDS, ['logits']),
    'llama3': (
        lambda: hf.LlamaForCausalLM(
            hf.LlamaConfig(
                **TEXT,
                rope_parameters=dict(
                    rope_type='llama3', rope_theta=500.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=16
                ),
            )
        ),
        IDS,
        ['logits'],
    ),
    'qwen2': (lambda: hf.Qwen2ForCausalLM(hf.Qwen2Config(**TEXT, tie_word_embeddings=True)), IDS, ['logits']),
    'mixtral': (lambda: hf.MixtralForCausalLM(hf.MixtralConfig(**TEXT, num_local_experts=4, num_experts_per_tok=2)), IDS, ['logits']),
    'bert': (
        lambda: hf.BertModel(hf.BertConfig(**{**TOWER, 'num_hidden_layers': 2}, vocab_size=24, max_position_embeddings=12)),
        lambda: dict(input_ids=tokens((2, 6), 1, 24), token_type_ids=tokens((2, 6), 2, 2), attention_mask=torch.tensor([[1, 1, 1, 1, 0, 0], [1] * 6])),
        ['last_hidden_state', 'pooler_output'],
    ),
    't5': (
        lambda: hf.T5ForConditionalGeneration(
            hf.T5Config(vocab_size=24, d_model=16, d_kv=8, d_ff=24, num_layers=2, num_heads=2, relative_attention_num_buckets=8, relative_attention_max_distance=16)
        ),
        lambda: dict(input_ids=tokens((2, 9), 1, 24), decoder_input_ids=tokens((2, 5), 2, 24)),
        ['logits'],
    ),
    'whisper': (
        lambda: hf.WhisperForConditionalGeneration(
            hf.WhisperConfig(
                vocab_size=24, num_mel_bins=6, d_model=16, encoder_layers=1, encoder_attention_heads=2, decoder_layers=1, decoder_attention_heads=2, encoder_ffn_dim=64,
                decoder_ffn_dim=64, max_source_positions=8, max_target_positions=10, pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1,
            )
        ),
        lambda: dict(input_features=floats((2, 6, 16), 1), decoder_input_ids=tokens((2, 5), 2, 24)),
        ['logits'],
    ),
    'clip': (
        lambda: hf.CLIPModel(
            hf.CLIPConfig(
                projection_dim=8,
                text_config=dict(TOWER, vocab_size=24, max_position_embeddings=8, eos_token_id=23),
                vision_config=dict(TOWER, image_size=16, patch_size=8),
            )
        ),
        lambda: dict(input_ids=tokens((3, 6), 1, 24), pixel_values=floats((2, 3, 16, 16), 2)),
        ['logits_per_text'],
    ),
    'mamba': (
        lambda: hf.MambaForCausalLM(hf.MambaConfig(vocab_size=24, hidden_size=12, num_hidden_layers=2, state_size=4, conv_kernel=3, time_step_rank=2)),
        IDS,
        ['logits'],
    ),
}


def record(name):
    make, inputs, outputs = MODELS[name]
    model = initialised(make())
    folder = FOLDER / name
    model.save_pretrained(folder)
    (folder / 'generation_config.json').unlink(missing_ok=True)
    given = inputs()
    with torch.no_grad():
        out = model(**given)
    values = {
        'torch': torch.__version__,
        'transformers': hf.__version__,
        'inputs': {key: stored(t) for key, t in given.items()},
        'outputs': {key: stored(out[key]) for key in outputs},
    }
    (folder / 'outputs.json').write_text(json.dumps(values, separators=(',', ':')) + '\n')
    return f'{name}: {sorted(p.name for p in folder.iterdir())}'


if __name__ == '__main__':
    for name in MODELS:
        print(record(name))
