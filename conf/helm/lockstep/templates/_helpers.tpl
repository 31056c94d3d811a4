{{- define "lockstep.name" -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- end -}}

{{- define "lockstep.secret" -}}
{{- .Values.existingSecret | default (include "lockstep.name" .) -}}
{{- end -}}

{{- define "lockstep.account" -}}
{{- .Values.serviceAccount.name | default (ternary (include "lockstep.name" .) "" .Values.serviceAccount.create) -}}
{{- end -}}

{{- define "lockstep.selector" -}}
app.kubernetes.io/name: lockstep
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "lockstep.labels" -}}
{{ include "lockstep.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}
