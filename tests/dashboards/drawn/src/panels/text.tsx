// Words in Markdown.
import { PanelPlugin, renderTextPanelMarkdown, type PanelProps } from '@grafana/data';
import type { Options } from '@grafana/schema/dist/esm/raw/composable/text/panelcfg/x/TextPanelCfg_types.gen';

function Words({ options, replaceVariables }: PanelProps<Options>) {
  const made = renderTextPanelMarkdown(replaceVariables(options.content, {}, 'html'));
  return <div className="markdown-html" dangerouslySetInnerHTML={{ __html: made }} />;
}

export const text = new PanelPlugin<Options>(Words);
text.meta = { ...text.meta, skipDataQuery: true };
